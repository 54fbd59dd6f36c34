// tekken.json: ids equal to mistral-common's, control tokens, the pattern beside a tokenizer.json,
// files that cannot be used.

#include "core/tokenizer/small_bpe.h"
#include "core/tokenizer/tokenizer_checks.h"
#include "support/test_room.h"

namespace mr::test::tst_tekken_tokenizer {

using nlohmann::json;

namespace {

// The tekken.json that the golden was made with.
json tekkenOf(const json& golden)
{
    json out;
    out["config"] = golden["config"];
    out["special_tokens"] = golden["special_tokens"];
    std::istringstream words(golden["vocab"].get<std::string>());
    std::string word;
    for (int rank = 0; words >> word; ++rank) {
        json token;
        token["rank"] = rank;
        token["token_bytes"] = word;
        token["token_str"] = nullptr;
        out["vocab"].push_back(token);
    }
    return out;
}

const json& tekkenGolden(const char* name = "published")
{
    static const json read = golden("bpe_tekken.json");
    return read[name];
}

json smallTekken()
{
    static const json made = tekkenOf(tekkenGolden());
    return made;
}

// The tokenizer.json of a byte-level model that cuts words at `pattern`.
json cutAt(const std::string& pattern)
{
    json out = smallBpe();
    out["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
    out["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern;
    return out;
}

std::string tekkenPattern()
{
    return tekkenGolden()["config"]["pattern"].get<std::string>();
}

} // namespace

class TstTekkenTokenizer : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void idsAreThoseOfMistralCommon();
    void ranksAloneDecideWhatMerges();
    void decodingLeavesControlTokensOut();
    void oldFilesHaveControlTokensWithoutAList();
    void controlTokensAreFoundInTheirPartsOnly();
    void streamsHaveTheIdsOfTheWholeText();
    void bosComesBeforeATextUnlessTheConfigSaysNo();
    void tokenizerJsonTakesThePatternOfTekken();
    void tokenizerJsonWithThatPatternHasNoNote();
    void tokenizerJsonOfAnotherKindIsUsedAsItIs();
    void tekkenStepsInForATokenizerJsonThatCannotBeUsed();
    void damageIsNamedByField_data();
    void damageIsNamedByField();
    void tokenThatIsThereTwiceIsRefused();
    void damagedFilesNeverCrash();
};

void TstTekkenTokenizer::idsAreThoseOfMistralCommon()
{
    const json& expected = tekkenGolden();
    const Folder folder;
    folder.write("tekken.json", smallTekken().dump());
    const auto tokenizer = openOrFail(folder.path());
    QCOMPARE(tokenizer->kind(), std::string_view("tekken"));
    QCOMPARE(tokenizer->vocabulary(), std::int64_t{1512});
    for (std::size_t i = 0; i < expected["texts"].size(); ++i)
        QCOMPARE(ids(*tokenizer, expected["texts"][i].get<std::string>()),
            expected["ids"][i].get<std::vector<TokenId>>());
}

// Tokens in an order that no training gives: words that are tokens come out of no merges.
void TstTekkenTokenizer::ranksAloneDecideWhatMerges()
{
    const json& expected = tekkenGolden("shuffled");
    const Folder folder;
    folder.write("tekken.json", tekkenOf(expected).dump());
    const auto tokenizer = openOrFail(folder.path());
    for (std::size_t i = 0; i < expected["texts"].size(); ++i)
        QCOMPARE(ids(*tokenizer, expected["texts"][i].get<std::string>()),
            expected["ids"][i].get<std::vector<TokenId>>());
}

void TstTekkenTokenizer::decodingLeavesControlTokensOut()
{
    const json& expected = tekkenGolden();
    const Folder folder;
    folder.write("tekken.json", smallTekken().dump());
    const auto tokenizer = openOrFail(folder.path());
    for (std::size_t i = 0; i < expected["ids"].size(); ++i) {
        auto all = expected["ids"][i].get<std::vector<TokenId>>();
        all.insert(all.begin(), 1);
        all.push_back(2);
        QCOMPARE(tokenizer->decode(all).value(), expected["decoded"][i].get<std::string>());
    }
    QCOMPARE(tokenizer->piece(5), std::string("[THINK]"));
    QCOMPARE(tokenizer->piece(11), std::string("<SPECIAL_11>"));
    QVERIFY(!tokenizer->decode(std::vector<TokenId>{1512}).ok());
}

void TstTekkenTokenizer::oldFilesHaveControlTokensWithoutAList()
{
    const Folder folder;
    json content = smallTekken();
    content.erase("special_tokens");
    content["config"]["version"] = "v3";
    content["config"]["default_num_special_tokens"] = 24;
    content["config"]["default_vocab_size"] = 1524;
    folder.write("tekken.json", content.dump());
    const auto tokenizer = openOrFail(folder.path());
    QCOMPARE(tokenizer->piece(11), std::string("<pad>"));
    QCOMPARE(tokenizer->piece(19), std::string("[TOOL_CONTENT]"));
    QCOMPARE(tokenizer->piece(20), std::string("<SPECIAL_20>"));
    QCOMPARE(ids(*tokenizer, "a"), std::vector<TokenId>{24 + 'a'});
}

void TstTekkenTokenizer::controlTokensAreFoundInTheirPartsOnly()
{
    const Folder folder;
    folder.write("tekken.json", smallTekken().dump());
    const auto tokenizer = openOrFail(folder.path());
    const std::vector<TokenId> spelled = ids(*tokenizer, "</s>");
    const Encoded both = encoded(*tokenizer, {{"</s>", true}, {"</s>", false}, {"[THINK]", true}});
    std::vector<TokenId> wanted{2};
    wanted.insert(wanted.end(), spelled.begin(), spelled.end());
    wanted.push_back(5);
    QVERIFY(spelled.size() > 1);
    QCOMPARE(both.ids, wanted);
    QCOMPARE(both.ends.back(), std::size_t{15});
}

void TstTekkenTokenizer::streamsHaveTheIdsOfTheWholeText()
{
    const Folder folder;
    folder.write("tekken.json", smallTekken().dump());
    const auto tokenizer = openOrFail(folder.path());
    std::string text;
    for (const json& one : tekkenGolden()["texts"])
        text += one.get<std::string>();
    const auto stream = tokenizer->stream();
    std::vector<TokenId> out;
    std::string waiting;
    std::size_t taken = 0;
    for (std::size_t at = 0; at < text.size(); at += 100) {
        waiting += text.substr(at, 100);
        const bool isEnd = at + 100 >= text.size();
        const std::string_view whole = std::string_view(waiting).substr(
            0, waiting.size() - (isEnd ? 0 : unfinishedBytes(waiting)));
        const std::size_t used = stream->encode(whole, isEnd, out).value();
        taken += isEnd ? 0 : used;
        waiting.erase(0, used);
    }
    QCOMPARE(out, ids(*tokenizer, text));
    QVERIFY(taken > text.size() / 2);
}

void TstTekkenTokenizer::bosComesBeforeATextUnlessTheConfigSaysNo()
{
    const Folder folder;
    folder.write("tekken.json", smallTekken().dump());
    const auto plain = openOrFail(folder.path());
    QVERIFY(plain->addsBos() && !plain->addsEos());
    QCOMPARE(plain->bos(), 1);
    QCOMPARE(plain->eos(), 2);
    folder.write("tokenizer_config.json", R"({"add_bos_token": false, "eos_token": "[/INST]"})");
    const auto told = openOrFail(folder.path());
    QVERIFY(!told->addsBos());
    QCOMPARE(told->eos(), 4);
    folder.write("tokenizer_config.json", R"({"eos_token": "<|end|>"})");
    QVERIFY(contains(refusal(folder.path()), "which tokenizer_config.json names"));
}

void TstTekkenTokenizer::tokenizerJsonTakesThePatternOfTekken()
{
    const Folder alone;
    const Folder both;
    alone.write("tokenizer.json", cutAt(R"(\p{L}+|\p{N}{1,3}|[^\p{L}\p{N}]+)").dump());
    both.write("tokenizer.json", cutAt(R"(\p{L}+|\p{N}{1,3}|[^\p{L}\p{N}]+)").dump());
    both.write("tekken.json", smallTekken().dump());
    const Folder right;
    right.write("tokenizer.json", cutAt(tekkenPattern()).dump());
    const std::string text = "wiLl a miL";
    const auto tokenizer = openOrFail(both.path());
    QCOMPARE(tokenizer->kind(), std::string_view("bpe"));
    QCOMPARE(ids(*tokenizer, text), ids(*openOrFail(right.path()), text));
    QVERIFY(ids(*tokenizer, text) != ids(*openOrFail(alone.path()), text));
    QVERIFY(contains(std::string(tokenizer->note()), "cuts words in another way"));
    QVERIFY(openOrFail(alone.path())->note().empty());
}

void TstTekkenTokenizer::tokenizerJsonWithThatPatternHasNoNote()
{
    const Folder folder;
    folder.write("tokenizer.json", cutAt(tekkenPattern()).dump());
    folder.write("tekken.json", smallTekken().dump());
    QVERIFY(openOrFail(folder.path())->note().empty());
    folder.write("tekken.json", "{\"config\": {}}");
    const auto tokenizer = openOrFail(folder.path());
    QVERIFY(contains(std::string(tokenizer->note()), "could not be compared"));
    QVERIFY(contains(std::string(tokenizer->note()), "pattern is missing"));
}

void TstTekkenTokenizer::tokenizerJsonOfAnotherKindIsUsedAsItIs()
{
    const Folder folder;
    json content = smallBpe();
    content["pre_tokenizer"] = json::parse(R"({"type": "Metaspace"})");
    content["decoder"] = json::parse(R"({"type": "Metaspace"})");
    content["model"]["vocab"]["\xE2\x96\x81"] = 300;
    folder.write("tokenizer.json", content.dump());
    folder.write("tekken.json", smallTekken().dump());
    const auto tokenizer = openOrFail(folder.path());
    QCOMPARE(ids(*tokenizer, "a"), (std::vector<TokenId>{300, 'a'}));
    QVERIFY(contains(std::string(tokenizer->note()), "used as it is"));
}

void TstTekkenTokenizer::tekkenStepsInForATokenizerJsonThatCannotBeUsed()
{
    const Folder folder;
    folder.write("tokenizer.json", "{}");
    folder.write("tekken.json", smallTekken().dump());
    QCOMPARE(openOrFail(folder.path())->kind(), std::string_view("tekken"));
    folder.write("tekken.json", "{}");
    QVERIFY(contains(refusal(folder.path()), "this is no tokenizer.json"));
}

void TstTekkenTokenizer::damageIsNamedByField_data()
{
    addRefusalColumns();
    addRefusal("/config", "[]", "config is missing");
    addRefusal("/config/pattern", "7", "config.pattern: must be a text");
    addRefusal("/config/pattern", "\"\"", "config.pattern: is empty");
    addRefusal("/config/pattern", "\"(\"", "config.pattern: ");
    addRefusal("/config/version", "\"3\"", "config.version:");
    addRefusal("/config/version", "null", "config: version is missing");
    addRefusal("/config/lowercase", "true", "config: \"lowercase\" is not known");
    addRefusal("/config/default_vocab_size", "-1", "config.default_vocab_size: must be a whole");
    addRefusal("/config/default_vocab_size", "9000000000", "config.default_vocab_size: must be");
    addRefusal("/config/default_vocab_size", "267", "config: default_vocab_size 267 has no room");
    addRefusal(
        "/config/default_vocab_size", "1513", "vocab: has 1500 tokens, but config names 1501");
    addRefusal("/config/num_vocab_tokens", "1501", "vocab: has 1500 tokens, but config names 1501");
    addRefusal("/config/default_num_special_tokens", "6", "special_tokens are 7, but");
    addRefusal("/config/default_num_special_tokens", "2.5", "default_num_special_tokens: must be");
    addRefusal("/special_tokens", "null", "special_tokens is missing, which version v11 needs");
    addRefusal("/special_tokens", "{}", "special_tokens must be a list");
    addRefusal("/special_tokens/1/rank", "2", "special_tokens[1].rank: is 2, but");
    addRefusal(
        "/special_tokens/1/token_str", "\"<unk>\"", "special_tokens[1]: \"<unk>\" is there twice");
    addRefusal("/special_tokens/1/token_str", "\"\"", "special_tokens[1].token_str: is empty");
    addRefusal("/special_tokens/1/token_str", "\"<SPECIAL_9>\"", "is there twice");
    addRefusal("/vocab", "{}", "vocab must be a list");
    addRefusal("/vocab/300/rank", "301", "vocab[300].rank: is 301, but");
    addRefusal("/vocab/300/rank", "\"300\"", "vocab[300].rank: must be a whole number");
    addRefusal(
        "/vocab/300/token_bytes", "\"a*b=\"", "vocab[300].token_bytes: \"a*b=\" is no base64");
    addRefusal("/vocab/300/token_bytes", "\"abc\"", "vocab[300].token_bytes:");
    addRefusal("/vocab/300/token_bytes", "\"====\"", "vocab[300].token_bytes:");
    addRefusal("/vocab/300/token_bytes", "\"\"", "vocab[300].token_bytes: is 0 bytes long");
    addRefusal("/vocab/65/token_bytes", "\"Qg==\"", "vocab[65].token_bytes: must be the byte 65");
    const std::string zeros(348, 'A');
    addRefusal("/vocab/300/token_bytes", ("\"" + zeros + "\"").c_str(),
        "vocab[300].token_bytes: is 261 bytes long");
}

void TstTekkenTokenizer::damageIsNamedByField()
{
    QFETCH(QByteArray, pointer);
    QFETCH(QByteArray, value);
    QFETCH(QByteArray, message);
    json content = smallTekken();
    content[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());
    const Folder folder;
    folder.write("tekken.json", content.dump());
    const std::string refused = refusal(folder.path());
    QVERIFY2(contains(refused, message.toStdString()), refused.c_str());
    QVERIFY2(refused.starts_with(folder.path("tekken.json")), refused.c_str());
}

void TstTekkenTokenizer::tokenThatIsThereTwiceIsRefused()
{
    json content = smallTekken();
    content["vocab"][400]["token_bytes"] = content["vocab"][300]["token_bytes"];
    const Folder folder;
    folder.write("tekken.json", content.dump());
    QVERIFY(
        contains(refusal(folder.path()), "vocab[400].token_bytes: rank 300 has the same bytes"));
}

void TstTekkenTokenizer::damagedFilesNeverCrash()
{
    const std::string whole = smallTekken().dump();
    std::uint32_t state = 7;
    for (std::size_t round = 0; round < 60; ++round) {
        std::string broken = whole.substr(0, round < 10 ? whole.size() * round / 10 : whole.size());
        for (int hit = 0; hit < 5 && !broken.empty(); ++hit) {
            state = state * 1664525 + 1013904223;
            const std::size_t at = (state >> 4) % broken.size();
            broken[at] = static_cast<char>(state >> 24);
        }
        const Folder folder;
        folder.write("tekken.json", broken);
        Result<std::unique_ptr<Tokenizer>> opened = Tokenizer::open(folder.path());
        if (opened.ok())
            QVERIFY(!ids(*opened.value(), "The miller").empty());
    }
}

MR_TEST(TstTekkenTokenizer)

} // namespace mr::test::tst_tekken_tokenizer

#include "tst_tekken_tokenizer.moc"
