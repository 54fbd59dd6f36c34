// Which column is the prompt, which the response: names, shapes, --map, refusals.

#include "core/data/columns.h"
#include "core/data/data_files.h"
#include "support/test_room.h"

using namespace mr;
using namespace mr::test;

namespace {

using Map = std::map<std::string, std::string>;

std::vector<ColumnFacts> texts(const std::vector<std::string>& names)
{
    std::vector<ColumnFacts> out;
    for (const std::string& name : names)
        out.push_back({name});
    return out;
}

Map chosen(const std::vector<ColumnFacts>& facts, const Map& asked = {})
{
    const DataSource source{"x.jsonl", DataFormat::Auto, asked};
    Result<ColumnMap> map = chooseColumns(source, facts);
    return map.ok() ? map.value().asMap() : Map{{"error", map.status().message()}};
}

std::string refusal(const std::vector<ColumnFacts>& facts, const Map& asked = {})
{
    return chosen(facts, asked)["error"];
}

} // namespace

class TstColumns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void knownNamesArePairs();
    void unknownNamesArePairedByShape();
    void mapsOverrideNames();
    void mapsThatCannotBeMeantAreRefused();
    void conversationsAreFoundByName();
    void unclearColumnsAreListed();
    void factsComeFromAllRowsSeen();
};

void TstColumns::knownNamesArePairs()
{
    QCOMPARE(chosen(texts({"id", "question", "answer"})),
        (Map{{"prompt", "question"}, {"response", "answer"}}));
    QCOMPARE(chosen(texts({"Instruction", "INPUT", "Output"})),
        (Map{{"prompt", "Instruction"}, {"input", "INPUT"}, {"response", "Output"}}));
    QCOMPARE(
        chosen(texts({"input", "target"})), (Map{{"prompt", "input"}, {"response", "target"}}));
    QCOMPARE(chosen(texts({"title", "text"})), (Map{{"text", "text"}}));
    QCOMPARE(chosen({{"question"}, {"answer", false, false}}), // numbers
        (Map{{"prompt", "question"}, {"response", "answer"}}));
    QCOMPARE(chosen(texts({"質問", "回答"})), (Map{{"prompt", "質問"}, {"response", "回答"}}));
}

void TstColumns::unknownNamesArePairedByShape()
{
    QCOMPARE(chosen(texts({"sentence_en", "sentence_ja"})),
        (Map{{"prompt", "sentence_en"}, {"response", "sentence_ja"}}));
    QCOMPARE(chosen({{"id", false, false}, {"left"}, {"right"}}),
        (Map{{"prompt", "left"}, {"response", "right"}}));
    QCOMPARE(chosen(texts({"line"})), (Map{{"text", "line"}}));
}

void TstColumns::mapsOverrideNames()
{
    const auto facts = texts({"question", "answer", "rationale"});
    QCOMPARE(chosen(facts, {{"response", "rationale"}}),
        (Map{{"prompt", "question"}, {"response", "rationale"}}));
    QCOMPARE(chosen(facts, {{"text", "rationale"}}), (Map{{"text", "rationale"}}));
    QCOMPARE(chosen({{"question"}, {"label", false, false}}, {{"response", "label"}}),
        (Map{{"prompt", "question"}, {"response", "label"}}));
}

void TstColumns::mapsThatCannotBeMeantAreRefused()
{
    const auto facts = texts({"question", "answer"});
    QVERIFY(contains(refusal(facts, {{"respond", "answer"}}), "not \"respond\""));
    QVERIFY(contains(refusal(facts, {{"response", "reply"}}),
        "the column \"reply\", which is not there; the columns are \"question\", \"answer\""));
    QVERIFY(contains(refusal(facts, {{"text", "answer"}, {"prompt", "question"}}), "stands alone"));
    QVERIFY(contains(refusal(facts, {{"prompt", "answer"}}), "the same column"));
}

void TstColumns::conversationsAreFoundByName()
{
    const ColumnFacts chat{"messages", false, true};
    QCOMPARE(chosen({chat}), (Map{{"messages", "messages"}}));
    QCOMPARE(chosen({{"talk", false, true}}, {{"messages", "talk"}}), (Map{{"messages", "talk"}}));
    const Map all{{"messages", "messages"}, {"tools", "tools"}, {"system", "system"}};
    const std::vector<ColumnFacts> full{chat, {"tools", false, true}, {"system"}};
    QCOMPARE(chosen(full), all);
    QCOMPARE(chosen(full, all), all);
    QVERIFY(contains(
        refusal({chat, {"chosen", false, true}, {"rejected", false, true}}), "holds preferences"));
    QVERIFY(
        contains(refusal({chat, {"question"}}, {{"messages", "messages"}, {"prompt", "question"}}),
            "stands alone"));
    QCOMPARE(
        chosen({chat, {"question"}, {"answer"}}, {{"prompt", "question"}, {"response", "answer"}}),
        (Map{{"prompt", "question"}, {"response", "answer"}}));
}

void TstColumns::unclearColumnsAreListed()
{
    const std::string message = refusal(texts({"one", "two", "three"}));
    QVERIFY(contains(message, "x.jsonl: cannot tell"));
    QVERIFY(contains(message, "\"one\", \"two\", \"three\""));
    QVERIFY(contains(message, "--map prompt="));
}

void TstColumns::factsComeFromAllRowsSeen()
{
    std::vector<ColumnFacts> facts;
    noteColumns({1, 1, {{"a", "x", CellKind::Text}, {"b", "", CellKind::Null}}}, facts);
    noteColumns({2, 2, {{"b", "1", CellKind::Number}, {"c", "", CellKind::Nested}}}, facts);

    QCOMPARE(facts.size(), 3U);
    QVERIFY(facts[0].text && !facts[1].text && !facts[2].text);
    QVERIFY(!facts[0].nested && !facts[1].nested && facts[2].nested);
}

MR_TEST(TstColumns)
#include "tst_columns.moc"
