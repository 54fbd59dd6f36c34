// Splitters of llama.cpp by name: each is found by its stages and gives them back.

#include "core/exchange/pre_tokenizers.h"
#include "support/test_room.h"

#include <QtTest>

#include <nlohmann/json.hpp>

namespace mr::test::tst_pre_tokenizers {

using nlohmann::json;

class TestPreTokenizers : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aNameIsFoundByItsStages_data();
    void aNameIsFoundByItsStages();
    void anAliasCutsAsItsSplitter();
    void othersAreRefused_data();
    void othersAreRefused();
    void anUnknownNameIsRefused();
};

void TestPreTokenizers::aNameIsFoundByItsStages_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("architecture");
    for (const char* name : {"llama-bpe", "dbrx", "qwen2", "qwen35", "tekken", "gpt-4o",
             "seed-coder", "hunyuan-dense", "gpt-2", "smollm"})
        QTest::newRow(name) << name << "llama";
    QTest::newRow("GLM-4") << "glm4"
                           << "glm4";
    QTest::newRow("EXAONE 4") << "exaone4"
                              << "exaone4";
    QTest::newRow("Granite") << "refact"
                             << "granite";
}

void TestPreTokenizers::aNameIsFoundByItsStages()
{
    QFETCH(QString, name);
    QFETCH(QString, architecture);
    const std::string own = name.toStdString();
    auto stages = preTokenizerOf(own);
    QVERIFY(stages.ok());
    const json content{
        {"pre_tokenizer", stages.value()}, {"model", {{"ignore_merges", ignoresMerges(own)}}}};
    const auto found = preTokenizerName(content, architecture.toStdString());
    QVERIFY2(found.ok(), found.status().message().c_str());
    QCOMPARE(Result(found).value(), own);
}

void TestPreTokenizers::anAliasCutsAsItsSplitter()
{
    QVERIFY(Result(preTokenizerOf("deepseek-r1-qwen")).value() ==
            Result(preTokenizerOf("qwen2")).value());
    QVERIFY(ignoresMerges("llama3"));
    QVERIFY(!ignoresMerges("qwen2"));
}

void TestPreTokenizers::othersAreRefused_data()
{
    QTest::addColumn<QString>("stages");
    QTest::addColumn<QString>("words");
    QTest::newRow("an expression of its own")
        << R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "x+"},
               "behavior": "Isolated"}, {"type": "ByteLevel", "add_prefix_space": false,
               "use_regex": false}]})"
        << "an expression of its own, x+";
    QTest::newRow("a space before texts") << R"({"type": "ByteLevel", "add_prefix_space": true})"
                                          << "puts a space before every text";
    QTest::newRow("a kept match")
        << R"({"type": "Split", "pattern": {"Regex": "x"}, "behavior": "MergedWithNext"})"
        << "cuts words at";
    QTest::newRow("another stage") << R"({"type": "WhitespaceSplit"})"
                                   << "a stage \"WhitespaceSplit\"";
}

void TestPreTokenizers::othersAreRefused()
{
    QFETCH(QString, stages);
    QFETCH(QString, words);
    const json content{{"pre_tokenizer", json::parse(stages.toStdString())}};
    const auto found = preTokenizerName(content, "llama");
    QVERIFY(!found.ok());
    QVERIFY2(found.status().message().find(words.toStdString()) != std::string::npos,
        found.status().message().c_str());
}

void TestPreTokenizers::anUnknownNameIsRefused()
{
    const auto stages = preTokenizerOf("nobody");
    QVERIFY(!stages.ok());
    QVERIFY(stages.status().message().find("\"nobody\"") != std::string::npos);
    QVERIFY(stages.status().message().find("llama-bpe, glm4") != std::string::npos);
}

MR_TEST(TestPreTokenizers)

} // namespace mr::test::tst_pre_tokenizers

#include "tst_pre_tokenizers.moc"
