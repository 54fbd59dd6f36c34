// TextStream: a text that comes in pieces has the ids of the whole, and most of it never waits.

#include "core/data/batch_stream.h"
#include "core/tokenizer/small_bpe.h"
#include "core/tokenizer/small_tokenizer.h"
#include "core/tokenizer/tokenizer_checks.h"
#include "support/test_room.h"

#include <random>

namespace mr::test::tst_text_stream {

namespace {

struct Streamed {
    std::vector<TokenId> ids;
    std::size_t mostWaiting = 0; // bytes
};

Streamed streamed(const Tokenizer& tokenizer, const std::string& text, std::size_t pieceBytes)
{
    Streamed out;
    const std::unique_ptr<TextStream> stream = tokenizer.stream();
    std::string waiting;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = std::min(at + pieceBytes, text.size());
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
            ++end; // pieces end with a character
        waiting += text.substr(at, end - at);
        at = end;
        Result<std::size_t> taken = stream->encode(waiting, at == text.size(), out.ids);
        if (!taken.ok())
            qFatal("%s", taken.status().message().c_str());
        waiting.erase(0, taken.value());
        out.mostWaiting = std::max(out.mostWaiting, waiting.size());
    }
    return out;
}

// Spaces of all kinds, line ends, added tokens and pieces of them, letters of several scripts,
// characters that join the one before.
std::string hardText(std::size_t parts, unsigned seed)
{
    static const std::vector<std::string> kParts{" ", "  ", "\n", "\n\n", "\r\n", "\t", " \n ",
        "the", " mill", "miller", "Wheel's", "it'll", "12", "3456", "...", "?!", "<think>", "<th",
        "<|end|>", "<|en", "</s>", "\xE6\xB0\xB4", "\xE8\xBB\x8A\xE3\x80\x82", "e\xCC\x81",
        "\xCC\x81", "\xE2\x96\x81", "\xC3\xA9", "\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD", "_", "a.b",
        "\xEF\xAC\x81", "\xE1\x84\x80", "\xE1\x85\xA1", "\xC2\xA0", "#", "|>", "[INST]"};
    std::mt19937 random(seed); // NOLINT(cert-msc51-cpp): the same text every time
    std::string out;
    for (std::size_t i = 0; i < parts; ++i)
        out += kParts[random() % kParts.size()];
    return out;
}

bool areEqual(const Tokenizer& tokenizer, const std::string& text)
{
    std::vector<TokenId> whole;
    if (!tokenizer.encode(text, whole).ok())
        qFatal("encode failed");
    for (const std::size_t bytes : {1U, 7U, 64U, 1000U, 30'000U})
        if (streamed(tokenizer, text, bytes).ids != whole) {
            qWarning("pieces of %zu bytes", bytes);
            return false;
        }
    return true;
}

} // namespace

class TstTextStream : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void sentencePieceHasTheIdsOfTheWhole_data();
    void sentencePieceHasTheIdsOfTheWhole();
    void jsonTokenizersHaveTheIdsOfTheWhole_data();
    void jsonTokenizersHaveTheIdsOfTheWhole();
    void normalizersHaveTheIdsOfTheWhole_data();
    void normalizersHaveTheIdsOfTheWhole();
    void publishedTokenizersHaveTheIdsOfTheWhole();
    void blocksOfATextInPiecesAreThoseOfTheWhole();
    void textFilesComeInPieces();
};

void TstTextStream::sentencePieceHasTheIdsOfTheWhole_data()
{
    QTest::addColumn<QString>("flags");
    QTest::addColumn<bool>("waits"); // for its whole text
    const QString identity = QStringLiteral("--normalization_rule_name=identity ");
    const QString keep = identity + QStringLiteral("--remove_extra_whitespaces=false ");
    const QString bpe = QStringLiteral("--model_type=bpe ");
    QTest::newRow("bytes") << keep + bpe + QStringLiteral("--byte_fallback=true") << false;
    QTest::newRow("unknowns") << keep + bpe << false;
    QTest::newRow("no prefix") << keep + bpe + QStringLiteral("--add_dummy_prefix=false") << false;
    QTest::newRow("trimmed") << identity + bpe << false;
    QTest::newRow("trimmed, no prefix")
        << identity + bpe + QStringLiteral("--add_dummy_prefix=false") << false;
    QTest::newRow("words of several")
        << keep + bpe + QStringLiteral("--split_by_whitespace=false") << false;
    QTest::newRow("own symbols")
        << keep + bpe +
               QStringLiteral("--user_defined_symbols=[INST],\xE6\xB0\xB4 --byte_fallback=true")
        << false;
    QTest::newRow("nfkc") << bpe + QStringLiteral("--byte_fallback=true") << false;
    QTest::newRow("suffix") << keep + bpe + QStringLiteral("--treat_whitespace_as_suffix=true")
                            << true;
    QTest::newRow("unigram") << keep + QStringLiteral("--model_type=unigram") << false;
    QTest::newRow("unigram, bytes")
        << keep + QStringLiteral("--model_type=unigram --byte_fallback=true") << false;
    QTest::newRow("unigram, trimmed") << identity + QStringLiteral("--model_type=unigram") << false;
    QTest::newRow("unigram, own symbols")
        << keep + QStringLiteral("--model_type=unigram --user_defined_symbols=[INST],the") << false;
    QTest::newRow("unigram, nfkc") << QStringLiteral("--model_type=unigram") << false;
    QTest::newRow("nfkc, spaces kept")
        << bpe + QStringLiteral("--byte_fallback=true --remove_extra_whitespaces=false") << false;
    QTest::newRow("nfkc, own symbols")
        << bpe + QStringLiteral("--user_defined_symbols=[INST],\xEF\xAC\x81,\xE6\xB0\xB4") << false;
    QTest::newRow("unigram, nfkc, own symbols")
        << QStringLiteral("--model_type=unigram "
                          "--user_defined_symbols=[INST],\xEF\xAC\x81,\xE6\xB0\xB4")
        << false;
    QTest::newRow("unigram, small letters, no prefix")
        << QStringLiteral("--model_type=unigram --normalization_rule_name=nmt_nfkc_cf "
                          "--add_dummy_prefix=false")
        << false;
}

void TstTextStream::sentencePieceHasTheIdsOfTheWhole()
{
    QFETCH(QString, flags);
    QFETCH(bool, waits);
    const Folder folder;
    trainTokenizer(folder, flags.toStdString());
    const auto tokenizer = openOrFail(folder.path());
    const std::string text = readFile(folder.path("corpus.txt"));

    for (unsigned seed = 1; seed <= 30; ++seed)
        QVERIFY2(
            areEqual(*tokenizer, hardText(seed * 10, seed)), qPrintable(QString::number(seed)));
    QVERIFY(areEqual(*tokenizer, text));
    const std::size_t waiting = streamed(*tokenizer, text, 100).mostWaiting;
    QVERIFY2(waits == (waiting > 1000), qPrintable(QString::number(waiting)));
}

void TstTextStream::jsonTokenizersHaveTheIdsOfTheWhole_data()
{
    QTest::addColumn<QByteArray>("normalizer");
    QTest::addColumn<QByteArray>("preTokenizer");
    QTest::addColumn<bool>("waits");
    const QByteArray none("null");
    const QByteArray gpt2(R"({"type": "ByteLevel", "add_prefix_space": false})");
    const auto split = [](const char* regex, const char* behaviour) {
        return QByteArray(R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern":
            {"Regex": ")") +
               regex + R"("}, "behavior": ")" + behaviour +
               R"("}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
    };
    const char* const llama3 =
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
    QTest::newRow("GPT-2") << none << gpt2 << false;
    QTest::newRow("Llama 3") << none << split(llama3, "Isolated") << false;
    QTest::newRow("Qwen") << QByteArray(R"({"type": "NFC"})") << split(llama3, "Isolated") << false;
    QTest::newRow("NFKC") << QByteArray(R"({"type": "NFKC"})") << split(llama3, "Isolated")
                          << false;
    QTest::newRow("removed") << none << split(R"(\\s+)", "Removed") << false;
    QTest::newRow("with the next") << none << split(R"(\\s)", "MergedWithNext") << false;
    QTest::newRow("with the one before") << none << split(R"(\\s)", "MergedWithPrevious") << true;
    QTest::newRow("contiguous") << none << split(R"(\\s)", "Contiguous") << true;
    QTest::newRow("looks back") << none << split(R"((?<=l)l|\\s)", "Isolated") << true;
    QTest::newRow("line starts") << none << split(R"(^\\w|\\s)", "Isolated") << true;
    QTest::newRow("prefix") << none
                            << QByteArray(R"({"type": "ByteLevel", "add_prefix_space": true})")
                            << false;
    QTest::newRow("stripped") << QByteArray(R"({"type": "Strip", "strip_left": true, "strip_right":
        true})") << gpt2 << false;
}

void TstTextStream::jsonTokenizersHaveTheIdsOfTheWhole()
{
    QFETCH(QByteArray, normalizer);
    QFETCH(QByteArray, preTokenizer);
    QFETCH(bool, waits);
    const Folder folder;
    nlohmann::json content = smallBpe();
    content["normalizer"] = nlohmann::json::parse(normalizer.toStdString());
    content["pre_tokenizer"] = nlohmann::json::parse(preTokenizer.toStdString());
    writeSmallBpe(folder, content);
    const auto tokenizer = openOrFail(folder.path());

    for (unsigned seed = 1; seed <= 30; ++seed)
        QVERIFY2(
            areEqual(*tokenizer, hardText(seed * 10, seed)), qPrintable(QString::number(seed)));
    const std::size_t waiting = streamed(*tokenizer, hardText(2000, 99), 100).mostWaiting;
    QVERIFY2(waits == (waiting > 2000), qPrintable(QString::number(waiting)));
}

// Whole stay normalizers with a table behind another step or a form behind a table, and Unigram
// models that take all of a text for one word.
void TstTextStream::normalizersHaveTheIdsOfTheWhole_data()
{
    QTest::addColumn<int>("variant");
    QTest::addColumn<bool>("waits");
    const QStringList whole{QStringLiteral("albert"), QStringLiteral("nmt"),
        QStringLiteral("bytes"), QStringLiteral("bytes, no prefix"),
        QStringLiteral("metaspace always False"), QStringLiteral("metaspace first False"),
        QStringLiteral("metaspace never False")};
    int index = 0;
    const nlohmann::json goldens = golden("unigram_variants.json");
    for (const nlohmann::json& variant : goldens["variants"]) {
        const auto name = QString::fromStdString(variant["name"].get<std::string>());
        QTest::newRow(qPrintable(name)) << index++ << whole.contains(name);
    }
}

void TstTextStream::normalizersHaveTheIdsOfTheWhole()
{
    QFETCH(int, variant);
    QFETCH(bool, waits);
    const nlohmann::json goldens = golden("unigram_variants.json");
    const Folder folder;
    folder.write("tokenizer.json",
        assemble(goldens, goldens["variants"][static_cast<std::size_t>(variant)]).dump());
    const auto tokenizer = openOrFail(folder.path());
    const std::vector<std::string> tableTexts{"\r\n", " ", "a", "\xEF\xAC\x81", "A\xCC\x88",
        "\xE3\x8C\x82", "\xEF\xBD\xB6\xEF\xBE\x9E", "\xE2\x80\x8B", "\xD8\x80", "\xE2\x80\x8D",
        "   ", "\xC2\xA0", "\xE1\x84\x92\xE1\x85\xA1", "1", "\xCC\x81", "<mask>", "\t"};
    std::mt19937 random(5); // NOLINT(cert-msc51-cpp): the same text every time
    std::string longText;
    for (unsigned seed = 1; seed <= 30; ++seed) {
        std::string text = hardText(seed * 5, seed);
        for (unsigned i = 0; i < seed * 10; ++i)
            text += tableTexts[random() % tableTexts.size()];
        longText += text;
        QVERIFY2(areEqual(*tokenizer, text), qPrintable(QString::number(seed)));
    }
    for (const nlohmann::json& text : goldens["texts"])
        QVERIFY2(areEqual(*tokenizer, text.get<std::string>()), text.dump().c_str());
    const std::size_t waiting = streamed(*tokenizer, longText, 100).mostWaiting;
    QVERIFY2(waits == (waiting > 2000), qPrintable(QString::number(waiting)));
}

void TstTextStream::publishedTokenizersHaveTheIdsOfTheWhole()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const std::string stories =
        readFile(data + "/datasets/tinystories_197k.txt").substr(0, 100'000);
    const std::string japanese = readFile(data + "/datasets/japanese/jcommonsenseqa_valid.json");
    for (const char* model :
        {"models/stories260K", "models/babyllama", "tokenizers/bpe/gpt2", "tokenizers/bpe/phi-2",
            "tokenizers/bpe/qwen2.5", "tokenizers/bpe/mistral-7b-instruct-v0.3",
            "tokenizers/bpe/torchtitan_test", "tokenizers/sentencepiece/mistral.v3.model",
            "tokenizers/sentencepiece/llmjp_v2.2_code10K_en20K_ja30K.model"}) {
        const auto tokenizer = openOrFail(data + "/" + model);
        for (unsigned seed = 1; seed <= 5; ++seed)
            QVERIFY2(areEqual(*tokenizer, hardText(seed * 40, seed)), model);
        for (const std::string& text : {stories, japanese.substr(0, 60'000)}) {
            std::vector<TokenId> whole;
            QVERIFY(tokenizer->encode(text.substr(0, text.rfind('\n')), whole).ok());
            const Streamed got = streamed(*tokenizer, text.substr(0, text.rfind('\n')), 10'000);
            QVERIFY2(got.ids == whole, model);
            QVERIFY2(got.mostWaiting < 12'000, model);
        }
    }
}

void TstTextStream::blocksOfATextInPiecesAreThoseOfTheWhole()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto tokenizer = openOrFail(folder.path());
    std::string text;
    while (text.size() < (std::size_t{5} << 20)) // more than two pieces of a file
        text += readFile(folder.path("corpus.txt"));
    std::vector<TokenId> ids{tokenizer->bos()};
    QVERIFY(tokenizer->encode(text, ids).ok());
    ids.push_back(tokenizer->eos());

    Result<TokenSet> set = buildTokenSet({{folder.write("long.txt", text), DataFormat::Text, {}}},
        *tokenizer, {.seqLen = 500, .threads = 3});

    QVERIFY2(set.ok(), set.status().message().c_str());
    QCOMPARE(set.value().rows, 1U);
    QCOMPARE(set.value().trainedTokens, ids.size() - 1);
    QCOMPARE(set.value().count(), static_cast<std::int64_t>((ids.size() - 2) / 500 + 1));
    TokenSequence sequence;
    for (std::int64_t i = 0; i < set.value().count(); ++i) {
        QVERIFY(set.value().sequences.read(i, sequence).ok());
        QVERIFY(std::equal(sequence.tokens.begin(), sequence.tokens.end(), ids.begin() + i * 500));
    }
}

void TstTextStream::textFilesComeInPieces()
{
    const Folder folder;
    std::string text = "x";
    while (text.size() < (std::size_t{5} << 20))
        text += "\xE6\xB0\xB4\n"; // a character lies across the end of a piece
    std::string read;
    std::size_t most = 0;
    bool goesOn = true;
    const Status status = readRecords(folder.write("t.txt", text), {}, [&](const Record& record) {
        read += record.cells[0].text;
        most = std::max(most, record.cells[0].text.size());
        goesOn = record.goesOn;
        return record.row == 1 ? Status() : Status::error(ErrorKind::Internal, "another row");
    });

    QVERIFY2(status.ok(), status.message().c_str());
    QVERIFY(read == text);
    QVERIFY(!goesOn && most <= (std::size_t{3} << 20));
}

MR_TEST(TstTextStream)

} // namespace mr::test::tst_text_stream

#include "tst_text_stream.moc"
