// Published tokenizers through the metadata of a GGUF file and back: the tokenizer that the file
// stands for gives the ids of the original.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/answer/check_texts.h"
#include "core/data/data_files.h"
#include "core/exchange/gguf_folder.h"
#include "core/exchange/gguf_tokenizer.h"
#include "core/exchange/gguf_tokens.h"
#include "core/exchange/gguf_vocabulary.h"
#include "core/gguf/gguf_writer.h"
#include "core/tokenizer/small_bpe.h"
#include "support/test_room.h"
// clang-format on

#include <QtTest>

#include <algorithm>
#include <filesystem>

namespace mr::test::tst_gguf_tokenizers {

namespace {

namespace fs = std::filesystem;

// A file with nothing but a tokenizer, opened again.
struct ThroughAFile {
    ThroughAFile(const fs::path& from, std::string_view architecture, std::int64_t rows)
    {
        auto opened = Tokenizer::open(from);
        if (!opened.ok())
            qFatal("%s", opened.status().message().c_str());
        original = std::move(opened).value();
        ModelConfig config;
        config.vocab = std::max(rows, original->vocabulary());
        auto values = ggufVocabulary({from, *original, config, architecture});
        status = values.status();
        if (!status.ok())
            return;
        GgufValues all{{"general.architecture", GgufValue::string(std::string(architecture))}};
        const GgufValues& own = values.value().values;
        all.insert(all.end(), own.begin(), own.end());
        const GgufSource source{"token_embd.weight", {1, config.vocab}, GgufType::F32,
            [](std::int64_t, std::span<float>) { return Status(); }};
        status = writeGguf(folder.path("tokens.gguf"), all, {source});
        if (status.ok())
            status = reopen();
    }

    Status reopen()
    {
        MR_ASSIGN(const GgufFile file, GgufFile::open(folder.path("tokens.gguf")));
        MR_ASSIGN(const auto texts, ggufTokenizerFiles(GgufKeys(file)));
        for (const auto& [name, text] : texts)
            folder.write(name, text);
        MR_ASSIGN(back, Tokenizer::open(folder.path()));
        return {};
    }

    static std::vector<TokenId> idsOf(const Tokenizer& tokenizer, const std::string& text)
    {
        std::vector<TokenId> ids;
        return tokenizer.encode(text, ids).ok() ? ids : std::vector<TokenId>{-1};
    }

    Folder folder;
    Status status;
    std::unique_ptr<Tokenizer> original;
    std::unique_ptr<Tokenizer> back;
};

} // namespace

class TestGgufTokenizers : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void publishedTokenizersComeBack_data();
    void publishedTokenizersComeBack();
    void addedTokensKeepTheirKind();
    void controlTokensAreFoundInTemplatesAlone();
    void rowsWithoutATokenArePadded();
    void moreTokensThanRowsAreRefused();
    void tekkenBecomesMerges();
};

void TestGgufTokenizers::publishedTokenizersComeBack_data()
{
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("pre");
    QTest::newRow("GPT-2") << "bpe/gpt2"
                           << "gpt2"
                           << "gpt-2";
    QTest::newRow("Phi-2") << "bpe/phi-2"
                           << "gpt2"
                           << "gpt-2";
    QTest::newRow("Qwen 2.5") << "bpe/qwen2.5"
                              << "gpt2"
                              << "qwen2";
    QTest::newRow("Mistral 7B v0.3, by its merges") << "bpe/mistral-7b-instruct-v0.3"
                                                    << "llama"
                                                    << "default";
}

void TestGgufTokenizers::publishedTokenizersComeBack()
{
    QFETCH(QString, folder);
    QFETCH(QString, model);
    QFETCH(QString, pre);
    if (sharedData().empty())
        QSKIP("the shared test data is not there");
    const fs::path from = fs::path(sharedData()) / "tokenizers" / folder.toStdString();
    const ThroughAFile made(from, "llama", 0);
    QVERIFY2(made.status.ok(), made.status.message().c_str());
    auto tokens = readGgufTokens(from, made.original->vocabulary(), "llama");
    QCOMPARE(tokens.value().model, model.toStdString());
    QCOMPARE(tokens.value().pre, pre.toStdString());
    for (const std::string& text : checkTexts())
        QVERIFY2(
            (tokens.value().normalises && text.starts_with(' ')) ||
                ThroughAFile::idsOf(*made.original, text) == ThroughAFile::idsOf(*made.back, text),
            text.c_str());
    QCOMPARE(made.back->bos(), made.original->bos());
    QCOMPARE(made.back->eos(), made.original->eos());
    QCOMPARE(made.back->addsBos(), made.original->addsBos());
}

void TestGgufTokenizers::addedTokensKeepTheirKind()
{
    const Folder folder;
    writeSmallBpe(folder);
    auto tokens = readGgufTokens(folder.path(), 270, "llama");
    QVERIFY2(tokens.ok(), tokens.status().message().c_str());
    const GgufTokens& own = tokens.value();
    const auto typeOf = [&own](int id) {
        return static_cast<GgufTokenType>(own.types.at(static_cast<std::size_t>(id)));
    };
    QCOMPARE(typeOf(0), GgufTokenType::Normal);
    QCOMPARE(typeOf(kSmallBpeBos), GgufTokenType::Control);
    QCOMPARE(typeOf(kSmallBpeThink), GgufTokenType::UserDefined);
    QCOMPARE(typeOf(269), GgufTokenType::Unused);
    QCOMPARE(own.merges.size(), std::size_t{6});
    QCOMPARE(own.find("<|end|>"), kSmallBpeEnd);
}

void TestGgufTokenizers::controlTokensAreFoundInTemplatesAlone()
{
    const Folder folder;
    writeSmallBpe(folder);
    const ThroughAFile made(folder.path(), "llama", 0);
    QVERIFY2(made.status.ok(), made.status.message().c_str());
    const std::string text = "mill<|end|>";
    for (const bool controls : {false, true}) {
        const TextPart part{text, controls};
        std::vector<std::vector<TokenId>> ids(2);
        std::vector<std::size_t> ends;
        QVERIFY(made.original->encodeParts({&part, 1}, ids[0], ends).ok());
        QVERIFY(made.back->encodeParts({&part, 1}, ids[1], ends).ok());
        QCOMPARE(ids[0], ids[1]);
        QCOMPARE(ids[1].back() == kSmallBpeEnd, controls);
    }
}

void TestGgufTokenizers::rowsWithoutATokenArePadded()
{
    const Folder folder;
    writeSmallBpe(folder);
    auto tokens = readGgufTokens(folder.path(), 300, "llama");
    QCOMPARE(tokens.value().tokens.size(), std::size_t{300});
    QCOMPARE(tokens.value().tokens.back(), std::string("[PAD299]"));
    const ThroughAFile made(folder.path(), "llama", 300);
    QVERIFY(made.status.ok());
    QCOMPARE(made.back->vocabulary(), made.original->vocabulary());
}

void TestGgufTokenizers::moreTokensThanRowsAreRefused()
{
    const Folder folder;
    writeSmallBpe(folder);
    const auto tokens = readGgufTokens(folder.path(), 264, "llama");
    QVERIFY(!tokens.ok());
    QVERIFY2(tokens.status().message().find("has the id 264, but the model has 264 rows") !=
                 std::string::npos,
        tokens.status().message().c_str());
}

void TestGgufTokenizers::tekkenBecomesMerges()
{
    // The 256 bytes, then "ab", "abc" and "bc": "abc" has two cuts, both of lower rank.
    nlohmann::json file;
    file["config"] = {
        {"pattern",
            R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
        {"num_vocab_tokens", 259}, {"default_vocab_size", 279}, {"default_num_special_tokens", 20},
        {"version", "v3"}};
    file["vocab"] = nlohmann::json::array();
    for (int byte = 0; byte < 256; ++byte)
        file["vocab"].push_back({{"rank", byte},
            {"token_bytes", QByteArray(1, static_cast<char>(byte)).toBase64().toStdString()},
            {"token_str", nullptr}});
    int rank = 256;
    for (const char* text : {"ab", "bc", "abc"})
        file["vocab"].push_back({{"rank", rank++},
            {"token_bytes", QByteArray(text).toBase64().toStdString()}, {"token_str", text}});
    const Folder folder;
    folder.write("tekken.json", file.dump());
    auto tokens = readGgufTokens(folder.path(), 279, "mistral3");
    QVERIFY2(tokens.ok(), tokens.status().message().c_str());
    QCOMPARE(tokens.value().pre, std::string("tekken"));
    const std::vector<std::string> merges{"a b", "b c", "a bc", "ab c"};
    QCOMPARE(tokens.value().merges, merges);
    const ThroughAFile made(folder.path(), "mistral3", 0);
    QVERIFY2(made.status.ok(), made.status.message().c_str());
    for (const char* text : {"abc", "cab abcab", "1a2bc"})
        QCOMPARE(ThroughAFile::idsOf(*made.back, text), ThroughAFile::idsOf(*made.original, text));
}

MR_TEST(TestGgufTokenizers)

} // namespace mr::test::tst_gguf_tokenizers

#include "tst_gguf_tokenizers.moc"
