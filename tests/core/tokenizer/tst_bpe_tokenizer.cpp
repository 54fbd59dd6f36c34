// tokenizer.json and vocab.json with merges.txt: ids equal to the tokenizers package's, parts and
// ends, text that is no UTF-8, files that cannot be used.

#include "core/tokenizer/small_bpe.h"
#include "core/tokenizer/small_tokenizer.h"
#include "core/tokenizer/tokenizer_checks.h"
#include "support/test_room.h"

#include <random>
#include <thread>

namespace mr::test::tst_bpe_tokenizer {

using nlohmann::json;

class TstBpeTokenizer : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyStageHasUpstreamsIds_data();
    void everyStageHasUpstreamsIds();
    void sharedTokenizersHaveUpstreamsIds_data();
    void sharedTokenizersHaveUpstreamsIds();
    void publishedVectorsComeOut();
    void mergesFollowTheirRanks();
    void longWordsHaveTheIdsOfShortOnes();
    void decodingGivesEveryByteBack();
    void addedTokenThatIsALetterStaysAByte();
    void controlsAreFoundInTheirPartsOnly();
    void endsOfPartsFollowTheText();
    void endsFollowTheTextThroughNormalisation();
    void bosAndEosFollowTheFiles();
    void threadsEncodeAtOnce();
    void whatIsNotKnownIsNamed_data();
    void whatIsNotKnownIsNamed();
    void damageOfTheMergesIsTheirs();
    void fileThatCannotBeUsedStepsBackForTheModel();
    void damagedFilesNeverCrash();
};

void TstBpeTokenizer::everyStageHasUpstreamsIds_data()
{
    QTest::addColumn<int>("variant");
    const json goldens = golden("bpe_variants.json");
    int index = 0;
    for (const json& variant : goldens["variants"])
        QTest::newRow(
            (variant["base"].get<std::string>() + ", " + variant["name"].get<std::string>())
                .c_str())
            << index++;
}

void TstBpeTokenizer::everyStageHasUpstreamsIds()
{
    QFETCH(int, variant);
    static const json goldens = golden("bpe_variants.json");
    const json& expected = goldens["variants"][static_cast<std::size_t>(variant)];
    const Folder folder;
    folder.write("tokenizer.json", assemble(goldens, expected).dump());
    const auto tokenizer = openOrFail(folder.path());

    QStringList got;
    QStringList decoded;
    for (const json& text : goldens["texts"]) {
        const std::vector<TokenId> all = ids(*tokenizer, text.get<std::string>());
        got << hex(hashOf(all), 8);
        decoded << hex(hashOf(tokenizer->decode(all).value()), 8);
    }

    const auto wanted = QString::fromStdString(expected["ids"].get<std::string>()).split(u' ');
    QCOMPARE(got.size(), wanted.size());
    for (int i = 0; i < got.size(); ++i)
        QVERIFY2(got[i] == wanted[i], goldens["texts"][static_cast<std::size_t>(i)].dump().c_str());
    QCOMPARE(decoded, QString::fromStdString(expected["decoded"].get<std::string>()).split(u' '));
}

void TstBpeTokenizer::sharedTokenizersHaveUpstreamsIds_data()
{
    QTest::addColumn<QString>("folder");
    const json goldens = golden("bpe_shared.json");
    for (const auto& [name, value] : goldens.items())
        QTest::newRow(name.c_str()) << QString::fromStdString(name);
}

void TstBpeTokenizer::sharedTokenizersHaveUpstreamsIds()
{
    QFETCH(QString, folder);
    const std::string data = sharedData();
    if (data.empty())
        return;
    const json expected = golden("bpe_shared.json")[folder.toStdString()];
    const auto tokenizer = openOrFail(data + "/tokenizers/bpe/" + folder.toStdString());

    QCOMPARE(tokenizer->vocabulary(), expected["vocabulary"].get<std::int64_t>());
    for (const auto& [text, wanted] : expected["in_full"].items())
        QCOMPARE(ids(*tokenizer, text), wanted.get<std::vector<TokenId>>());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // numbers, not memory
    for (const auto& [name, wanted] : expected["files"].items()) {
        const std::vector<TokenId> got = ids(*tokenizer, readFile(data + "/datasets/" + name));
        QCOMPARE(got.size(), wanted[0].get<std::size_t>());
        QCOMPARE(hex(hashOf(got), 16), QString::fromStdString(wanted[1].get<std::string>()));
    }
#endif
    QStringList naughty;
    for (const json& text : json::parse(readFile(data + "/malformed/blns/blns.json")))
        naughty << hex(hashOf(ids(*tokenizer, text.get<std::string>())), 8);
    QCOMPARE(naughty, QString::fromStdString(expected["naughty"].get<std::string>()).split(u' '));
}

// llama.cpp's and swift-transformers' GPT-2 cases.
void TstBpeTokenizer::publishedVectorsComeOut()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const auto tokenizer = openOrFail(data + "/tokenizers/bpe/gpt2");
    const std::string vectors = data + "/tokenizers/vectors/";
    const auto read = [&](const char* name) {
        return QString::fromStdString(readFile(vectors + name));
    };
    const QStringList texts =
        read("ggml-vocab-gpt-2.gguf.inp").split(QStringLiteral("\n__ggml_vocab_test__\n"));
    const QStringList lines = read("ggml-vocab-gpt-2.gguf.out").split(u'\n');
    int equal = 0;
    for (int i = 0; i < texts.size() && i < lines.size(); ++i) {
        QStringList got;
        for (const TokenId id : ids(*tokenizer, texts[i].toStdString()))
            got << QString::number(id);
        equal += got == lines[i].split(u' ', Qt::SkipEmptyParts) ? 1 : 0;
    }
    QCOMPARE(equal, 47);

    const json swift = json::parse(readFile(vectors + "gpt2_encoded_tokens.json"));
    QCOMPARE(ids(*tokenizer, swift["text"].get<std::string>()),
        swift["token_ids"].get<std::vector<TokenId>>());
}

void TstBpeTokenizer::mergesFollowTheirRanks()
{
    const Folder folder;
    writeSmallBpe(folder);
    const auto tokenizer = openOrFail(folder.path());

    // " m" and "il" first, then " mil"; "ill" would have come later.
    QCOMPARE(ids(*tokenizer, " mill"), (std::vector<TokenId>{259, 'l'}));
    QCOMPARE(ids(*tokenizer, "mill"), (std::vector<TokenId>{'m', 261}));
    QCOMPARE(ids(*tokenizer, "lele the"), (std::vector<TokenId>{258, 258, ' ', 260, 'e'}));
    QCOMPARE(tokenizer->piece(259), letterOf(' ') + "mil");
    QVERIFY(tokenizer->kind() == "bpe");
    QCOMPARE(tokenizer->vocabulary(), 266);
}

void TstBpeTokenizer::longWordsHaveTheIdsOfShortOnes()
{
    json content = smallBpe();
    content["pre_tokenizer"]["use_regex"] = false; // one word, however long
    const Folder folder;
    writeSmallBpe(folder, content);
    const auto tokenizer = openOrFail(folder.path());
    const std::vector<TokenId> one = ids(*tokenizer, " mille th");

    for (const int times : {2, 3, 4, 5, 40, 20000}) {
        std::string text;
        std::vector<TokenId> wanted;
        for (int i = 0; i < times; ++i) {
            text += " mille th";
            wanted.insert(wanted.end(), one.begin(), one.end());
        }
        QVERIFY(ids(*tokenizer, text) == wanted);
    }
}

void TstBpeTokenizer::decodingGivesEveryByteBack()
{
    const Folder folder;
    writeSmallBpe(folder);
    const auto tokenizer = openOrFail(folder.path());
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::string text = round % 2 == 0 ? "the mill \xE7\xB2\x89" : "";
        for (unsigned i = 0; i < random() % 40; ++i)
            text += static_cast<char>(random());
        QCOMPARE(tokenizer->decode(ids(*tokenizer, text)).value(), text);
    }
    for (const TokenId id : {-1, 266})
        QVERIFY(!tokenizer->decode(std::vector<TokenId>{id}).ok());
    QCOMPARE(tokenizer->decode(std::vector<TokenId>{'a', kSmallBpeEnd, kSmallBpeThink}).value(),
        std::string("a<think>"));
}

// "é" is the letter of the byte 0xE9, with which the other character begins.
void TstBpeTokenizer::addedTokenThatIsALetterStaysAByte()
{
    const Folder folder;
    json content = smallBpe();
    content["added_tokens"].push_back(
        {{"id", 0xE9}, {"content", "\xC3\xA9"}, {"special", false}, {"normalized", true}});
    writeSmallBpe(folder, content);
    const auto tokenizer = openOrFail(folder.path());

    const std::vector<TokenId> all = ids(*tokenizer, "x\xE9\x83\xA8");

    QCOMPARE(tokenizer->decode(all).value(), std::string("x\xE9\x83\xA8"));
}

void TstBpeTokenizer::controlsAreFoundInTheirPartsOnly()
{
    const Folder folder;
    writeSmallBpe(folder);
    const auto tokenizer = openOrFail(folder.path());
    const auto controls = [&](const std::vector<TextPart>& parts) {
        const Encoded got = encoded(*tokenizer, parts);
        return std::count_if(got.ids.begin(), got.ids.end(),
            [](TokenId id) { return id >= kSmallBpeBos && id <= kSmallBpeEnd; });
    };

    QCOMPARE(controls({{"<s>a</s>", true}}), 2);
    QCOMPARE(controls({{"<s>a</s>", false}}), 0);
    QCOMPARE(controls({{"<|end|>", true}, {"<|end|>", false}, {"<|end|>", true}}), 2);
    QCOMPARE(controls({{"<|en", true}, {"d|>", true}}), 1);
    QCOMPARE(controls({{"<|en", true}, {"d|>", false}}), 0);
    QCOMPARE(controls({{"<|en", false}, {"d|>", true}}), 0);
    QCOMPARE(controls({{"<|end", false}, {"<|end|>", true}}), 1);
    QCOMPARE(ids(*tokenizer, "<think>"), std::vector<TokenId>{kSmallBpeThink});
    const std::string user = "<s> </s><|end|>";
    QCOMPARE(tokenizer->decode(ids(*tokenizer, user)).value(), user);
}

void TstBpeTokenizer::endsOfPartsFollowTheText()
{
    const Folder folder;
    writeSmallBpe(folder);
    const auto tokenizer = openOrFail(folder.path());

    const Encoded got =
        encoded(*tokenizer, {{"<s>", true}, {"the mi", false}, {"ll", true}, {"</s>", true}});

    // <s> th e " mil" l </s>
    QCOMPARE(got.ids, (std::vector<TokenId>{kSmallBpeBos, 260, 'e', 259, 'l', kSmallBpeEos}));
    QCOMPARE(got.ends, (std::vector<std::size_t>{3, 5, 6, 10, 11, 15}));
}

void TstBpeTokenizer::endsFollowTheTextThroughNormalisation()
{
    json content = smallBpe();
    content["normalizer"]["type"] = "NFC";
    content["pre_tokenizer"]["add_prefix_space"] = true;
    content["added_tokens"][2]["normalized"] = true; // <|end|>
    const Folder folder;
    writeSmallBpe(folder, content);
    const auto tokenizer = openOrFail(folder.path());

    const Encoded got = encoded(*tokenizer, {{"e\xCC\x81t<|end|>", false}, {"<|end|>e", true}});

    // " ", the two bytes of é, which end with the mark, t, a person's <|end|> as text, the
    // template's
    const std::vector<TokenId> begin = {' ', 0xC3, 0xA9, 't'};
    QVERIFY(std::equal(begin.begin(), begin.end(), got.ids.begin()));
    QCOMPARE(std::vector<std::size_t>(got.ends.begin(), got.ends.begin() + 4),
        (std::vector<std::size_t>{3, 3, 3, 4}));
    QCOMPARE(std::count(got.ids.begin(), got.ids.end(), kSmallBpeEnd), 1);
    QCOMPARE(*(got.ids.end() - 3), kSmallBpeEnd);
    QCOMPARE(std::vector<std::size_t>(got.ends.end() - 3, got.ends.end()),
        (std::vector<std::size_t>{18, 19, 19}));
}

void TstBpeTokenizer::bosAndEosFollowTheFiles()
{
    const Folder folder;
    json content = smallBpe();
    writeSmallBpe(folder, content);
    auto tokenizer = openOrFail(folder.path());
    QCOMPARE(tokenizer->bos(), kSmallBpeBos);
    QCOMPARE(tokenizer->eos(), kSmallBpeEos);
    QVERIFY(tokenizer->addsBos() && !tokenizer->addsEos()); // as tokenizer_config.json asks

    content["post_processor"] = json::parse(R"({"type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|end|>"}}],
        "special_tokens": {"<|end|>": {"ids": [264]}}})");
    writeSmallBpe(folder, content);
    tokenizer = openOrFail(folder.path());
    QVERIFY(!tokenizer->addsBos() && tokenizer->addsEos()); // the template comes first
    QCOMPARE(tokenizer->eos(), kSmallBpeEnd);

    writeSmallBpe(folder);
    folder.write("tokenizer_config.json", "{}");
    folder.write("config.json", R"({"bos_token_id": 262, "eos_token_id": [264, 263]})");
    tokenizer = openOrFail(folder.path());
    QCOMPARE(tokenizer->bos(), kSmallBpeBos);
    QCOMPARE(tokenizer->eos(), kSmallBpeEnd);
    QVERIFY(!tokenizer->addsBos());

    folder.write("config.json", // of a model that sees
        R"({"bos_token_id": 263, "text_config": {"bos_token_id": 264, "eos_token_id": 262}})");
    tokenizer = openOrFail(folder.path());
    QCOMPARE(tokenizer->bos(), kSmallBpeEos);
    QCOMPARE(tokenizer->eos(), kSmallBpeBos);
    folder.write("config.json", R"({"text_config": [262]})");
    QCOMPARE(openOrFail(folder.path())->eos(), -1);
}

void TstBpeTokenizer::threadsEncodeAtOnce()
{
    const Folder folder;
    writeSmallBpe(folder);
    const auto tokenizer = openOrFail(folder.path());
    std::string text;
    for (int i = 0; i < 3000; ++i)
        text += " the mill " + std::to_string(i);
    const std::vector<TokenId> wanted = ids(*tokenizer, text);
    std::array<bool, 4> equal{};
    {
        std::vector<std::jthread> threads;
        for (bool& own : equal)
            threads.emplace_back([&] { own = ids(*tokenizer, text) == wanted; });
    }
    for (const bool own : equal)
        QVERIFY(own);
}

void TstBpeTokenizer::whatIsNotKnownIsNamed_data()
{
    addRefusalColumns();
    const auto row = addRefusal;
    row("/model/type", "\"WordPiece\"", "model: type \"WordPiece\" is not supported");
    row("/model/type", "\"Unigram\"", "model: type \"Unigram\" after ByteLevel");
    row("/model/dropout", "0.1", "model: dropout");
    row("/model/end_of_word_suffix", "\"</w>\"", "model.end_of_word_suffix");
    row("/model/vocab", "[]", "model: vocab must be an object");
    row("/model/vocab/a", "-1", "\"a\" has the id -1");
    row("/model/vocab/a", "99999999999", "\"a\" has the id 99999999999");
    row("/model/vocab/a", "98", "both have the id 98");
    row("/model/merges/0", "\"a\"", "model.merges[0]: must be two texts");
    row("/model/merges/1", "[\"a\", \"b\"]", "\"ab\" is not in the vocabulary");
    row("/model/merges", "{}", "model: merges must be a list");
    row("/model/unk_token", "\"<nowhere>\"", "model.unk_token: \"<nowhere>\"");
    row("/normalizer", R"({"type": "Precompiled"})", "normalizer: precompiled_charsmap");
    row("/normalizer", R"({"type": "Replace", "content": "x"})", "normalizer: pattern must be");
    row("/pre_tokenizer", R"({"type": "UnicodeScripts"})", "pre_tokenizer: type");
    row("/pre_tokenizer",
        R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})",
        "pre_tokenizer: the expression \"(a\" cannot be used");
    row("/pre_tokenizer",
        R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Sideways"})",
        "pre_tokenizer: behavior \"Sideways\"");
    row("/pre_tokenizer",
        R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Metaspace"}]})",
        "pre_tokenizer.pretokenizers[1]: type \"Metaspace\" after ByteLevel");
    row("/decoder", R"({"type": "WordPiece"})", "decoder: type \"WordPiece\"");
    row("/post_processor", R"({"type": "BertProcessing"})", "post_processor: cls is missing");
    row("/added_tokens/0/id", "5", "added_tokens[0]: the added token \"<s>\" has the id 5");
    row("/added_tokens/0/id", "-7", "added_tokens[0]: id -7 is out of range");
    row("/added_tokens/0/content", "7", "added_tokens[0].content: must be a text");
    row("/added_tokens/0/special", "1", "added_tokens[0].special: must be true or false");
}

void TstBpeTokenizer::whatIsNotKnownIsNamed()
{
    QFETCH(QByteArray, pointer);
    QFETCH(QByteArray, value);
    QFETCH(QByteArray, message);
    json content = smallBpe();
    if (pointer == "/added_tokens/0/id" && value == "5")
        content["model"]["vocab"]["<s>"] = 262;
    content[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());
    const Folder folder;
    writeSmallBpe(folder, content);

    const std::string said = refusal(folder.path());

    QVERIFY(contains(said, "tokenizer.json: "));
    QVERIFY(contains(said, message.toStdString()));
}

void TstBpeTokenizer::damageOfTheMergesIsTheirs()
{
    const Folder folder;
    const json content = smallBpe();
    folder.write("vocab.json", content["model"]["vocab"].dump());
    const auto said = [&](const std::string& merges) {
        folder.write("merges.txt", "#version: 0.2\ni l\n" + merges);
        const auto tokenizer = Tokenizer::open(folder.path());
        return tokenizer.ok() ? std::string("it was accepted") : tokenizer.status().message();
    };
    QCOMPARE(said("l e\n"), std::string("it was accepted"));
    for (const auto& [merges, why] : std::vector<std::pair<std::string, std::string>>{
             {"l e\nl\n", "line 4: \"l\" is not two pieces"},
             {"l e x\n", "line 3: \"l e x\" is not two pieces"},
             {"\nl x\n", "line 4: \"l x\" needs the piece \"lx\""},
             {"l \xFF\n", "line 3: not valid UTF-8"}}) {
        QVERIFY(contains(said(merges), why));
        QVERIFY(contains(said(merges), "merges.txt"));
    }
    folder.write("vocab.json", R"({"a": -1})"); // and the vocabulary's are its own
    QVERIFY(contains(said("l e\n"), "vocab.json: "));
}

void TstBpeTokenizer::fileThatCannotBeUsedStepsBackForTheModel()
{
    const Folder folder;
    trainTokenizer(folder);
    folder.write("tokenizer.json", R"({"model": {"type": "Unigram"}})");
    QVERIFY(openOrFail(folder.path())->kind() == "sentencepiece");
    QVERIFY(contains(refusal(folder.path("tokenizer.json")), "model: vocab must be a list"));

    folder.write("tokenizer.json", smallBpe().dump());
    QVERIFY(openOrFail(folder.path())->kind() == "bpe");
}

void TstBpeTokenizer::damagedFilesNeverCrash()
{
    const Folder folder;
    const std::string good = smallBpe().dump();
    std::mt19937 random(13);
    int refused = 0;
    for (int round = 0; round < 600; ++round) {
        std::string bad = good;
        if (round % 3 == 0)
            bad.resize(random() % good.size());
        else
            for (unsigned i = 0; i <= random() % 4; ++i)
                bad[random() % bad.size()] = static_cast<char>(random() % 128);
        folder.write("tokenizer.json", bad);
        Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(folder.path());
        refused += tokenizer.ok() ? 0 : 1;
        if (!tokenizer.ok())
            continue;
        std::vector<TokenId> out;
        QVERIFY(tokenizer.value()->encode("The mill 3 \xE7\xB2\x89</s>\xFF\n x", out).ok());
        QVERIFY(tokenizer.value()->decode(out).ok());
    }
    QVERIFY(refused >= 200); // every truncation
    folder.write("tokenizer.json", std::string(100000, '['));
    QVERIFY(contains(refusal(folder.path()), "nested deeper than 64 levels"));
}

MR_TEST(TstBpeTokenizer)

} // namespace mr::test::tst_bpe_tokenizer

#include "tst_bpe_tokenizer.moc"
