// SentencePiece tokenizers: ids equal to libsentencepiece's own on whole texts, hostile files.

#include "core/tokenizer/small_tokenizer.h"
#include "core/tokenizer/spm_model.h"
#include "core/tokenizer/tokenizer.h"
#include "support/test_room.h"

#include <sentencepiece_processor.h>

#include <nlohmann/json.hpp>
#include <random>

namespace mr::test::tst_sentencepiece_tokenizer {

namespace {

// Ids that libsentencepiece gives for the text in one piece.
std::vector<int> oracle(const std::string& model, const std::string& text)
{
    sentencepiece::SentencePieceProcessor processor;
    if (!processor.Load(model).ok())
        qFatal("cannot load %s", model.c_str());
    return processor.EncodeAsIds(text);
}

std::unique_ptr<Tokenizer> openOrFail(const std::string& path)
{
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(path);
    if (!tokenizer.ok())
        qFatal("%s", tokenizer.status().message().c_str());
    return std::move(tokenizer).value();
}

std::vector<TokenId> ids(const Tokenizer& tokenizer, const std::string& text)
{
    std::vector<TokenId> out;
    if (const Status status = tokenizer.encode(text, out); !status.ok())
        qFatal("%s", status.message().c_str());
    return out;
}

std::string refusal(const std::string& path)
{
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(path);
    return tokenizer.ok() ? std::string("it was accepted") : tokenizer.status().message();
}

// Lines of every kind, long enough to be cut many times.
std::string manyLines()
{
    std::string text;
    std::mt19937 random(7);
    while (text.size() < 200000) {
        const auto n = random();
        text += std::string(n % 4, ' ') + "The miller " + std::to_string(n);
        text += n % 3 == 0 ? " \xE7\xB2\x89\xE5\xB1\x8B\xF0\x9F\x8C\xBE" : " runs";
        text += std::string(n % 5 == 0 ? 3 : 1, '\n');
        text += n % 7 == 0 ? "\xF0\x9F\x8C\xBE" : n % 11 == 0 ? "\xFF\r\n" : "";
    }
    return text;
}

std::vector<std::string> sharedModels(const std::string& data)
{
    return {data + "/models/stories260K/tokenizer.model",
        data + "/models/babyllama/tokenizer.model",
        data + "/tokenizers/sentencepiece/mistral.v3.model",
        data + "/tokenizers/sentencepiece/google_test_model.model",
        data + "/tokenizers/sentencepiece/llmjp_v2.2_code10K_en20K_ja30K.model"};
}

} // namespace

class TstSentencepieceTokenizer : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void longTextHasTheIdsOfTheWholeText_data();
    void longTextHasTheIdsOfTheWholeText();
    void onlyLocalModelsAreCut();
    void realTextHasTheIdsOfTheWholeText();
    void naughtyStringsAgreeWithTheLibrary();
    void countsOfTheSharedDataComeOut();
    void controlTokensInTextStayText();
    void decodingGivesTheTextBack();
    void decodingRefusesIdsOutsideTheVocabulary();
    void habitsComeFromTheConfig();
    void addedTokensGoOnTop();
    void controlsAreFoundInTheirPartsOnly();
    void endsOfPartsFollowTheText();
    void prefixOfLaterRunsFollowsTheConfig();
    void brokenConfigsAreNamed();
    void foldersWithoutAModelSayWhatIsThere();
    void filesThatAreNoModelAreRefused();
    void damagedModelsNeverCrash();
    void damagedNormalisationTablesNeverCrash();
};

void TstSentencepieceTokenizer::longTextHasTheIdsOfTheWholeText_data()
{
    QTest::addColumn<QString>("flags");
    const QString identity = QStringLiteral("--normalization_rule_name=identity ");
    const QString keep = identity + QStringLiteral("--remove_extra_whitespaces=false ");
    QTest::newRow("bpe, bytes") << keep + QStringLiteral("--model_type=bpe --byte_fallback=true");
    QTest::newRow("bpe, unknowns") << keep + QStringLiteral("--model_type=bpe");
    QTest::newRow("bpe, no prefix")
        << keep + QStringLiteral("--model_type=bpe --add_dummy_prefix=false");
    QTest::newRow("bpe, trimmed") << identity + QStringLiteral("--model_type=bpe");
    QTest::newRow("bpe, nfkc") << QStringLiteral("--model_type=bpe --byte_fallback=true");
    QTest::newRow("bpe, suffix") << keep +
                                        QStringLiteral(
                                            "--model_type=bpe --treat_whitespace_as_suffix=true");
    QTest::newRow("unigram") << keep + QStringLiteral("--model_type=unigram");
}

void TstSentencepieceTokenizer::longTextHasTheIdsOfTheWholeText()
{
    QFETCH(QString, flags);
    const Folder folder;
    trainTokenizer(folder, flags.toStdString());
    const auto tokenizer = openOrFail(folder.path());
    const std::string text = manyLines();

    const std::vector<TokenId> got = ids(*tokenizer, text);

    QVERIFY(got == oracle(folder.path("tokenizer.model"), text));
}

void TstSentencepieceTokenizer::onlyLocalModelsAreCut()
{
    const std::string keep = "--model_type=bpe --normalization_rule_name=identity ";
    const auto cut = [](const std::string& flags) {
        const Folder folder;
        trainTokenizer(folder, flags);
        Result<SpmModel> model = readSpmModel(readFile(folder.path("tokenizer.model")));
        return model.ok() && model.value().mayBeCut();
    };

    QVERIFY(cut(keep + "--remove_extra_whitespaces=false"));
    QVERIFY(cut(keep));
    QVERIFY(cut("--model_type=bpe --remove_extra_whitespaces=false"));
    QVERIFY(!cut("--model_type=unigram --normalization_rule_name=identity "
                 "--remove_extra_whitespaces=false"));
}

void TstSentencepieceTokenizer::realTextHasTheIdsOfTheWholeText()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    for (const std::string& model : sharedModels(data)) {
        const auto tokenizer = openOrFail(model);
        for (const char* file :
            {"tinystories_197k.txt", "tinyshakespeare.txt", "japanese/jcommonsenseqa_valid.json",
                "japanese/jmmlu_high_school_mathematics.csv"}) {
            const std::string text = readFile(data + "/datasets/" + file);
            QVERIFY(!text.empty());
            QVERIFY2(ids(*tokenizer, text) == oracle(model, text), file);
        }
    }
}

void TstSentencepieceTokenizer::naughtyStringsAgreeWithTheLibrary()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const auto strings = nlohmann::json::parse(readFile(data + "/malformed/blns/blns.json"));
    for (const std::string& model : sharedModels(data)) {
        const auto tokenizer = openOrFail(model);
        sentencepiece::SentencePieceProcessor processor;
        QVERIFY(processor.Load(model).ok());
        for (const auto& entry : strings) {
            const auto text = entry.get<std::string>();
            const std::vector<TokenId> got = ids(*tokenizer, text);
            QVERIFY2(got == processor.EncodeAsIds(text), text.c_str());
            QCOMPARE(tokenizer->decode(got).value(), processor.DecodeIds(got));
        }
    }
}

void TstSentencepieceTokenizer::countsOfTheSharedDataComeOut()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const auto tokenizer = openOrFail(data + "/models/stories260K");
    const std::string shakespeare = readFile(data + "/datasets/tinyshakespeare.txt");

    QCOMPARE(ids(*tokenizer, readFile(data + "/datasets/tinystories_197k.txt")).size(), 100702U);
    QCOMPARE(ids(*tokenizer, shakespeare.substr(0, 60000)).size(), 37036U);
    QCOMPARE(tokenizer->vocabulary(), 512);
    QCOMPARE(tokenizer->bos(), 1);
    QCOMPARE(tokenizer->eos(), 2);
    QVERIFY(tokenizer->addsBos());
}

void TstSentencepieceTokenizer::controlTokensInTextStayText()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto tokenizer = openOrFail(folder.path());
    const std::string text = "<s>a</s> <unk> <0x0A>";

    const std::vector<TokenId> got = ids(*tokenizer, text);

    for (const TokenId id : got)
        QVERIFY(id != tokenizer->bos() && id != tokenizer->eos() && id != 0);
    QCOMPARE(tokenizer->decode(got).value(), text);
}

void TstSentencepieceTokenizer::decodingGivesTheTextBack()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto tokenizer = openOrFail(folder.path());
    const std::string text = "The miller\n\n  counts\t\xE7\xB2\x89 \xF0\x9F\x8C\xBE\n";
    std::vector<TokenId> all{tokenizer->bos()};
    QVERIFY(tokenizer->encode(text, all).ok());
    all.push_back(tokenizer->eos());

    QCOMPARE(tokenizer->decode(all).value(), text);
    QCOMPARE(tokenizer->piece(tokenizer->eos()), std::string("</s>"));
}

void TstSentencepieceTokenizer::decodingRefusesIdsOutsideTheVocabulary()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto tokenizer = openOrFail(folder.path());
    for (const TokenId id : {-1, static_cast<TokenId>(tokenizer->vocabulary())}) {
        Result<std::string> text = tokenizer->decode(std::vector<TokenId>{id});
        QVERIFY(!text.ok());
        QVERIFY(contains(text.status().message(), std::to_string(id)));
        QVERIFY(!tokenizer->piece(id).empty());
    }
}

void TstSentencepieceTokenizer::habitsComeFromTheConfig()
{
    const Folder folder;
    trainTokenizer(folder);
    auto tokenizer = openOrFail(folder.path());
    QVERIFY(tokenizer->addsBos() && !tokenizer->addsEos());

    folder.write("tokenizer_config.json",
        R"({"add_bos_token": false, "add_eos_token": true, "eos_token": {"content": "<s>"}})");
    tokenizer = openOrFail(folder.path());

    QVERIFY(!tokenizer->addsBos() && tokenizer->addsEos());
    QCOMPARE(tokenizer->eos(), 1);
}

void TstSentencepieceTokenizer::addedTokensGoOnTop()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto own = static_cast<TokenId>(openOrFail(folder.path())->vocabulary());
    const std::string id = std::to_string(own);
    folder.write("added_tokens.json", "{\"<|end|>\": " + id + "}");
    folder.write("tokenizer_config.json",
        "{\"eos_token\": \"<|end|>\", \"added_tokens_decoder\": {\"" + std::to_string(own + 1) +
            R"(": {"content": "<think>", "special": false}}})");

    const auto tokenizer = openOrFail(folder.path());

    QCOMPARE(tokenizer->vocabulary(), own + 2);
    QCOMPARE(tokenizer->eos(), own);
    std::vector<TokenId> all = ids(*tokenizer, "The miller");
    const std::vector<TokenId> more = ids(*tokenizer, "counts");
    all.push_back(own + 1);
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(own);
    QCOMPARE(tokenizer->decode(all).value(), std::string("The miller<think> counts"));
    for (const TokenId token : ids(*tokenizer, "<|end|>"))
        QVERIFY(token < own);
    QCOMPARE(ids(*tokenizer, "<think>"), std::vector<TokenId>{own + 1}); // not special: ordinary
}

void TstSentencepieceTokenizer::controlsAreFoundInTheirPartsOnly()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto tokenizer = openOrFail(folder.path());
    const auto controls = [&](std::vector<TextPart> parts) {
        std::vector<TokenId> got;
        std::vector<std::size_t> ends;
        if (!tokenizer->encodeParts(parts, got, ends).ok() || got.size() != ends.size())
            qFatal("parts cannot be encoded");
        return std::count_if(got.begin(), got.end(), [&](TokenId id) { return id <= 2; });
    };

    QCOMPARE(controls({{"<s>a</s>", true}}), 2);
    QCOMPARE(controls({{"<s>a</s>", false}}), 0);
    QCOMPARE(controls({{"<s>", true}, {"a </s> b", false}, {"</s>", true}}), 2);
    QCOMPARE(controls({{"<", true}, {"s>", true}, {"a</", false}, {"s>", true}}), 1);
    QCOMPARE(controls({{"<", false}, {"s>", true}, {"</s", true}, {">", false}}), 0);
    QCOMPARE(controls({{"</s", false}, {"<s>", true}}), 1);
}

void TstSentencepieceTokenizer::endsOfPartsFollowTheText()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto tokenizer = openOrFail(folder.path());
    const std::string text = "The miller \xE7\xB2\x89 counts";
    const std::vector<TextPart> parts = {{"<s>", true}, {text, false}, {"</s>", true}};
    std::vector<TokenId> got;
    std::vector<std::size_t> ends;

    QVERIFY(tokenizer->encodeParts(parts, got, ends).ok());

    QCOMPARE(ends.size(), got.size());
    QVERIFY(std::is_sorted(ends.begin(), ends.end()));
    QCOMPARE(ends.front(), 3U);
    QCOMPARE(*(ends.end() - 2), 3 + text.size());
    QCOMPARE(ends.back(), 7 + text.size());
    QVERIFY(ends.at(1) > 3); // the prefix belongs to the next token
    const std::size_t character = 3 + text.find('\xE7') + 3;
    QCOMPARE(std::count(ends.begin(), ends.end(), character), 3); // its three bytes
    std::vector<TokenId> whole{tokenizer->bos()};
    QVERIFY(tokenizer->encode(text, whole).ok());
    whole.push_back(tokenizer->eos());
    QCOMPARE(got, whole);
}

void TstSentencepieceTokenizer::prefixOfLaterRunsFollowsTheConfig()
{
    const Folder folder;
    trainTokenizer(folder);
    const auto second = [&](const char* config) {
        folder.write("tokenizer_config.json", config);
        const auto tokenizer = openOrFail(folder.path());
        std::vector<TokenId> got;
        std::vector<std::size_t> ends;
        const std::vector<TextPart> parts = {{"<s>The miller", true}};
        if (!tokenizer->encodeParts(parts, got, ends).ok())
            qFatal("parts cannot be encoded");
        return tokenizer->piece(got.at(1));
    };

    QVERIFY(second("{}").starts_with("\xE2\x96\x81"));
    QVERIFY(second(R"({"legacy": true})").starts_with("\xE2\x96\x81"));
    QVERIFY(second(R"({"legacy": false})").starts_with("T"));
}

void TstSentencepieceTokenizer::brokenConfigsAreNamed()
{
    const Folder folder;
    trainTokenizer(folder);
    const char* broken[] = {"", "[1]", "{\"add_bos_token\": 1}", "{\"eos_token\": \"<nowhere>\"}",
        "{\"added_tokens_decoder\": {\"-3\": {\"content\": \"x\"}}}",
        "{\"added_tokens_decoder\": {\"999999999\": {\"content\": \"x\"}}}"};
    for (const char* text : broken) {
        folder.write("tokenizer_config.json", text);
        QVERIFY(contains(refusal(folder.path()), "tokenizer_config.json"));
    }
}

void TstSentencepieceTokenizer::foldersWithoutAModelSayWhatIsThere()
{
    const Folder folder;
    QVERIFY(contains(refusal(folder.path()), "has no tokenizer.json, no tokenizer.model"));
    folder.write("vocab.json", "{}");
    QVERIFY(contains(refusal(folder.path()), "has vocab.json but none of"));
    folder.write("tekken.json", "{}");
    QVERIFY(contains(refusal(folder.path()), "tekken.json: config is missing"));
    folder.write("tokenizer.json", "{}");
    QVERIFY(contains(refusal(folder.path()), "tokenizer.json: model is missing"));
    QVERIFY(contains(refusal(folder.path("absent.model")), "absent.model"));
}

void TstSentencepieceTokenizer::filesThatAreNoModelAreRefused()
{
    const Folder folder;
    const auto with = [&](std::string_view content) {
        return refusal(folder.write("tokenizer.model", content));
    };
    QVERIFY(contains(with(""), "is empty"));
    QVERIFY(
        contains(with("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "git-lfs"));
    QVERIFY(contains(with("# A text file\n"), "not a SentencePiece model"));
    QVERIFY(contains(with(std::string(4096, '\0')), "not a SentencePiece model"));
    QVERIFY(contains(with("{\"version\": \"1.0\"}"), "not a SentencePiece model"));
}

void TstSentencepieceTokenizer::damagedModelsNeverCrash()
{
    const Folder folder;
    trainTokenizer(folder);
    const std::string good = readFile(folder.path("tokenizer.model"));
    std::mt19937 random(11);
    int refused = 0;
    for (int round = 0; round < 1500; ++round) {
        std::string bad = good;
        if (round % 3 == 0)
            bad.resize(random() % good.size());
        else
            for (unsigned i = 0; i <= random() % 4; ++i)
                bad[random() % bad.size()] = static_cast<char>(random());
        folder.write("tokenizer.model", bad);
        Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(folder.path());
        refused += tokenizer.ok() ? 0 : 1;
        if (!tokenizer.ok())
            continue;
        std::vector<TokenId> out;
        QVERIFY(tokenizer.value()->encode("The miller 3 \xE7\xB2\x89</s>\n x", out).ok());
        QVERIFY(tokenizer.value()->decode(out).ok());
    }
    QVERIFY(refused >= 500); // every truncation
}

void TstSentencepieceTokenizer::damagedNormalisationTablesNeverCrash()
{
    const Folder folder;
    trainTokenizer(folder, "--model_type=bpe --byte_fallback=true"); // has the NFKC table
    const std::string good = readFile(folder.path("tokenizer.model"));
    QVERIFY(good.size() > 100000);
    std::mt19937 random(12);
    for (int round = 0; round < 150; ++round) {
        std::string bad = good;
        for (int i = 0; i < 40; ++i)
            bad[8000 + random() % (bad.size() - 8000)] = static_cast<char>(random());
        folder.write("tokenizer.model", bad);
        Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(folder.path());
        std::vector<TokenId> out;
        if (tokenizer.ok())
            QVERIFY(tokenizer.value()
                        ->encode("\xEF\xBC\xA1\xE2\x91\xA0\xEF\xAC\x81 \xE3\x8D\xBF", out)
                        .ok());
    }
}

MR_TEST(TstSentencepieceTokenizer)

} // namespace mr::test::tst_sentencepiece_tokenizer

#include "tst_sentencepiece_tokenizer.moc"
