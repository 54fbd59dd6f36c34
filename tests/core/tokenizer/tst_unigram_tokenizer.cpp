// Unigram's tokenizer.json: ids equal to the tokenizers package's, unknown characters, control
// tokens, the normalisation table, files that cannot be used.

#include "core/tokenizer/precompiled_charsmap.h"
#include "core/tokenizer/prefix_tree.h"
#include "core/tokenizer/tokenizer_checks.h"
#include "support/test_room.h"

#include <random>

namespace mr::test::tst_unigram_tokenizer {

using nlohmann::json;

namespace {

// Metaspace before a vocabulary of few pieces; <s>, </s> and <unk> are control tokens in it.
json smallUnigram()
{
    return json::parse(R"({"added_tokens": [
            {"id": 0, "content": "<s>", "special": true},
            {"id": 1, "content": "</s>", "special": true},
            {"id": 2, "content": "<unk>", "special": true}],
        "normalizer": null, "post_processor": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 2, "vocab": [["<s>", 0], ["</s>", 0], ["<unk>", 0],
            ["▁", -2.0], ["m", -3.0], ["i", -3.0], ["l", -3.0], ["mi", -4.0], ["ill", -5.0],
            ["▁mill", -9.5], ["s", -3.5], ["<", -3.0], [">", -3.0], ["/", -3.0]]}})");
}

std::vector<TokenId> idsBy(const json& content, const std::string& text)
{
    const Folder folder;
    folder.write("tokenizer.json", content.dump());
    return ids(*openOrFail(folder.path()), text);
}

using Ids = std::vector<TokenId>;

} // namespace

class TstUnigramTokenizer : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyStageHasUpstreamsIds_data();
    void everyStageHasUpstreamsIds();
    void highestSumOfScoresWins();
    void firstOfEqualSumsStays();
    void unknownCharactersSideBySideAreOneToken();
    void unknownCharactersBecomeTheirBytesWhereTheVocabularyHasThem();
    void characterThatNothingCoversIsAnErrorWithoutUnknown();
    void controlTokensNeverComeOutOfText();
    void endsFollowTheText();
    void textThatIsNoUtf8IsUnknown();
    void olderPostProcessorsFrameTheText();
    void prefixTreeFindsWhatWasPut();
    void damagedTablesAreRefused();
    void whatIsNotKnownIsNamed_data();
    void whatIsNotKnownIsNamed();
    void damagedFilesNeverCrash();
};

void TstUnigramTokenizer::everyStageHasUpstreamsIds_data()
{
    QTest::addColumn<int>("variant");
    int index = 0;
    const json goldens = golden("unigram_variants.json");
    for (const json& variant : goldens["variants"])
        QTest::newRow(variant["name"].get<std::string>().c_str()) << index++;
}

void TstUnigramTokenizer::everyStageHasUpstreamsIds()
{
    QFETCH(int, variant);
    static const json goldens = golden("unigram_variants.json");
    const json& expected = goldens["variants"][static_cast<std::size_t>(variant)];
    const Folder folder;
    folder.write("tokenizer.json", assemble(goldens, expected).dump());
    const auto tokenizer = openOrFail(folder.path());
    QVERIFY(tokenizer->kind() == "unigram");

    QStringList got;
    QStringList decoded;
    for (const json& text : goldens["texts"]) {
        const Ids all = ids(*tokenizer, text.get<std::string>());
        got << hex(hashOf(all), 8);
        decoded << hex(hashOf(tokenizer->decode(all).value()), 8);
    }

    const auto wanted = QString::fromStdString(expected["ids"].get<std::string>()).split(u' ');
    QCOMPARE(got.size(), wanted.size());
    for (int i = 0; i < got.size(); ++i)
        QVERIFY2(got[i] == wanted[i], goldens["texts"][static_cast<std::size_t>(i)].dump().c_str());
    QCOMPARE(decoded, QString::fromStdString(expected["decoded"].get<std::string>()).split(u' '));
}

void TstUnigramTokenizer::highestSumOfScoresWins()
{
    json content = smallUnigram();
    QCOMPARE(idsBy(content, "mill"), (Ids{9})); // -9.5 against -10 of "▁", "m", "ill"
    content["model"]["vocab"][9][1] = -10.5;
    QCOMPARE(idsBy(content, "mill"), (Ids{3, 4, 8}));
    QCOMPARE(idsBy(content, "mi s"), (Ids{3, 7, 3, 10}));
}

void TstUnigramTokenizer::firstOfEqualSumsStays()
{
    json content = smallUnigram();
    content["model"]["vocab"][7][1] = -6.0; // "mi" as "m" and "i", and met first
    QCOMPARE(idsBy(content, "mi"), (Ids{3, 7}));
    content["model"]["vocab"][7][1] = -6.5;
    QCOMPARE(idsBy(content, "mi"), (Ids{3, 4, 5}));
}

void TstUnigramTokenizer::unknownCharactersSideBySideAreOneToken()
{
    const json content = smallUnigram();
    QCOMPARE(idsBy(content, "mxyzm"), (Ids{3, 4, 2, 4}));
    QCOMPARE(idsBy(content, "水車"), (Ids{3, 2}));
    QCOMPARE(idsBy(content, "x m x"), (Ids{3, 2, 3, 4, 3, 2}));
}

void TstUnigramTokenizer::unknownCharactersBecomeTheirBytesWhereTheVocabularyHasThem()
{
    json content = smallUnigram();
    content["model"]["byte_fallback"] = true;
    QCOMPARE(idsBy(content, "水x"), (Ids{3, 2}));
    for (const char* byte : {"<0xE6>", "<0xB0>", "<0xB4>"})
        content["model"]["vocab"].push_back(json::array({byte, 0.0}));
    QCOMPARE(idsBy(content, "m水i"), (Ids{3, 4, 14, 15, 16, 5}));
    QCOMPARE(idsBy(content, "水x"), (Ids{3, 2})); // "x" has no byte, so none are taken
    content["model"]["vocab"].push_back(json::array({"<0x78>", 0.0}));
    QCOMPARE(idsBy(content, "水x"), (Ids{3, 14, 15, 16, 17}));
}

void TstUnigramTokenizer::characterThatNothingCoversIsAnErrorWithoutUnknown()
{
    json content = smallUnigram();
    content["model"]["unk_id"] = nullptr;
    const Folder folder;
    folder.write("tokenizer.json", content.dump());
    const auto tokenizer = openOrFail(folder.path());
    Ids out;
    QVERIFY(tokenizer->encode("mill", out).ok());
    const Status status = tokenizer->encode("mi水", out);
    QVERIFY(!status.ok());
    QVERIFY(contains(status.message(), "no piece of the tokenizer covers \"水\""));
}

void TstUnigramTokenizer::controlTokensNeverComeOutOfText()
{
    const Folder folder;
    folder.write("tokenizer.json", smallUnigram().dump());
    const auto tokenizer = openOrFail(folder.path());

    QCOMPARE(ids(*tokenizer, "<s>"), (Ids{3, 11, 10, 12}));
    QCOMPARE(ids(*tokenizer, "</s>"), (Ids{3, 11, 13, 10, 12}));
    QCOMPARE(encoded(*tokenizer, {{"<s>", true}, {"s", false}}).ids, (Ids{0, 3, 10}));
    QCOMPARE(encoded(*tokenizer, {{"<s>", true}, {"</s>", false}, {"</s>", true}}).ids,
        (Ids{0, 3, 11, 13, 10, 12, 1}));
}

void TstUnigramTokenizer::endsFollowTheText()
{
    json content = smallUnigram();
    content["normalizer"] = json::parse(R"({"type": "Sequence", "normalizers": [{"type": "Nmt"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]})");
    const Folder folder;
    folder.write("tokenizer.json", content.dump());

    const Encoded got = encoded(*openOrFail(folder.path()), {{"m\x01 \t xymi", false}});

    // "▁" goes with "m"; the white space becomes one, of which the last byte counts
    QCOMPARE(got.ids, (Ids{3, 4, 3, 2, 7}));
    QCOMPARE(got.ends, (std::vector<std::size_t>{1, 1, 5, 7, 9}));
}

void TstUnigramTokenizer::textThatIsNoUtf8IsUnknown()
{
    QCOMPARE(idsBy(smallUnigram(), "m\xFF\xE6\xB0i"), (Ids{3, 4, 2, 3, 5}));
}

void TstUnigramTokenizer::olderPostProcessorsFrameTheText()
{
    json content = smallUnigram();
    content["post_processor"] =
        json::parse(R"({"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]})");
    const Folder folder;
    folder.write("tokenizer.json", content.dump());
    const auto tokenizer = openOrFail(folder.path());
    QVERIFY(tokenizer->addsBos() && tokenizer->addsEos());
    QCOMPARE(tokenizer->bos(), 0);
    QCOMPARE(tokenizer->eos(), 1);
}

void TstUnigramTokenizer::prefixTreeFindsWhatWasPut()
{
    std::mt19937 random(5);
    std::map<std::string, std::int32_t> all;
    for (std::int32_t i = 0; i < 5000; ++i) {
        std::string text(1 + random() % 6, ' ');
        for (char& c : text)
            c = static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 3);
        all.emplace(text, i);
    }
    PrefixTree tree;
    tree.build({all.begin(), all.end()});
    for (const auto& [text, value] : all) {
        QCOMPARE(tree.find(text), value);
        if (all.count(text + "z") == 0)
            QCOMPARE(tree.find(text + "z"), PrefixTree::kNothing);
    }
    tree.erase(all.begin()->first);
    QCOMPARE(tree.find(all.begin()->first), PrefixTree::kNothing);
    QCOMPARE(tree.find(""), PrefixTree::kNothing);
}

void TstUnigramTokenizer::damagedTablesAreRefused()
{
    const json variants = golden("unigram_variants.json")["variants"];
    json content = smallUnigram();
    for (const json& variant : variants)
        if (variant["name"] == "t5")
            content["normalizer"] = variant["fields"]["normalizer"];
    const std::string good = content["normalizer"]["precompiled_charsmap"];
    std::mt19937 random(17);
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
        std::string bad = good;
        bad[random() % bad.size()] = static_cast<char>('A' + random() % 26);
        bad[random() % bad.size()] = static_cast<char>('a' + random() % 26);
        content["normalizer"]["precompiled_charsmap"] = bad;
        const Folder folder;
        folder.write("tokenizer.json", content.dump());
        Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(folder.path());
        refused += tokenizer.ok() ? 0 : 1;
        Ids out;
        if (tokenizer.ok())
            QVERIFY(tokenizer.value()->encode("q ﬁ ① \r\n ｶﾞ e\u0301 …", out).ok());
    }
    QVERIFY(refused > 100);
    QVERIFY(!PrecompiledCharsmap::read("").ok());
    QVERIFY(!PrecompiledCharsmap::read(std::string("\x04\0\0\0abcd", 8)).ok());
}

void TstUnigramTokenizer::whatIsNotKnownIsNamed_data()
{
    addRefusalColumns();
    const auto row = addRefusal;
    row("/model/vocab", "{}", "model: vocab must be a list of pieces");
    row("/model/vocab", "[]", "model.vocab: has 0 pieces");
    row("/model/vocab/3", "[\"a\"]", "model.vocab[3]: must be a text and its score");
    row("/model/vocab/3", "[\"a\", \"b\"]", "model.vocab[3]: must be a text and its score");
    row("/model/unk_id", "14", "model.unk_id: must be the id of a piece, not 14");
    row("/model/unk_id", "-1", "model.unk_id");
    row("/model/unk_id", "\"<unk>\"", "model.unk_id");
    row("/model/byte_fallback", "1", "model.byte_fallback: must be true or false");
    row("/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "?"})", "is no base64");
    row("/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": ""})",
        "normalizer.precompiled_charsmap: its normalisation table is empty");
    row("/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"})",
        "its normalisation table is damaged");
    row("/post_processor", R"({"type": "BertProcessing", "cls": ["a", 0], "sep": ["b"]})",
        "post_processor.sep: must be a text and its id");
}

void TstUnigramTokenizer::whatIsNotKnownIsNamed()
{
    QFETCH(QByteArray, pointer);
    QFETCH(QByteArray, value);
    QFETCH(QByteArray, message);
    json content = smallUnigram();
    content[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());
    const Folder folder;
    folder.write("tokenizer.json", content.dump());

    const std::string said = refusal(folder.path());

    QVERIFY(contains(said, "tokenizer.json: "));
    QVERIFY(contains(said, message.toStdString()));
}

void TstUnigramTokenizer::damagedFilesNeverCrash()
{
    const Folder folder;
    const std::string good = smallUnigram().dump();
    std::mt19937 random(13);
    for (int round = 0; round < 600; ++round) {
        std::string bad = good;
        for (unsigned i = 0; i <= random() % 4; ++i)
            bad[random() % bad.size()] = static_cast<char>(random() % 128);
        folder.write("tokenizer.json", bad);
        Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(folder.path());
        if (!tokenizer.ok())
            continue;
        Ids out;
        const Status done = tokenizer.value()->encode("The mill 3 \xE7\xB2\x89</s>\xFF\n x", out);
        QVERIFY(!done.ok() || tokenizer.value()->decode(out).ok());
    }
}

MR_TEST(TstUnigramTokenizer)

} // namespace mr::test::tst_unigram_tokenizer

#include "tst_unigram_tokenizer.moc"
