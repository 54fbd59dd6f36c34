// Rows to token sequences: which tokens train, where rows are cut, how text becomes blocks.

#include "core/data/batch_stream.h"
#include "core/data/pair_format.h"
#include "core/tokenizer/small_tokenizer.h"
#include "support/test_room.h"

namespace mr::test::tst_token_set {

namespace {

DataSource file(const std::string& path)
{
    DataSource source;
    source.path = path;
    return source;
}

TokenSequence sequence(const TokenSet& set, std::int64_t index)
{
    TokenSequence out;
    if (const Status status = set.sequences.read(index, out); !status.ok())
        qFatal("%s", status.message().c_str());
    return out;
}

TokenSet build(const Tokenizer& tokenizer, const DataSource& source, const TokenSetOptions& options)
{
    Result<TokenSet> set = buildTokenSet({source}, tokenizer, options);
    if (!set.ok())
        qFatal("%s", set.status().message().c_str());
    return std::move(set).value();
}

std::uint64_t trainedIn(const TokenSet& set)
{
    std::uint64_t count = 0;
    for (std::int64_t i = 0; i < set.count(); ++i) {
        const TokenSequence s = sequence(set, i);
        for (std::size_t t = 1; t < s.trained.size(); ++t)
            count += s.trained[t];
    }
    return count;
}

} // namespace

class TstTokenSet : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void onlyTheResponseAndItsEndAreTrained();
    void inputsStandBetweenPromptAndResponse();
    void promptsAreThoseOfGeneration();
    void longRowsAreCutAndCounted();
    void rowsWithNothingToTrainAreLeftOut();
    void blocksShareOneTokenSoEveryTargetCountsOnce();
    void standaloneBlocksPartitionTheText();
    void documentsAreSplitWithSpecialsEach();
    void firstBlocksOnlyCutDocuments();
    void badRowsNameTheirLine();
    void realPairsAreTokenised();
    void storiesHaveThePublishedCounts();

private:
    std::vector<TokenId> ids(const std::string& text) const
    {
        std::vector<TokenId> out;
        if (!m_tokenizer->encode(text, out).ok())
            qFatal("encode failed");
        return out;
    }

    Folder m_folder;
    std::unique_ptr<Tokenizer> m_tokenizer;
};

void TstTokenSet::initTestCase()
{
    trainTokenizer(m_folder);
    m_tokenizer = Tokenizer::open(m_folder.path()).value();
}

void TstTokenSet::onlyTheResponseAndItsEndAreTrained()
{
    const std::string path =
        m_folder.write("p.jsonl", "{\"question\":\"The miller?\",\"answer\":\"counts 3\"}\n");
    std::vector<TokenId> expected{m_tokenizer->bos()};
    for (const TokenId id : ids("The miller?\n"))
        expected.push_back(id);
    const std::size_t border = expected.size();
    for (const TokenId id : ids("counts 3"))
        expected.push_back(id);
    expected.push_back(m_tokenizer->eos());

    const TokenSet set = build(*m_tokenizer, file(path), {.seqLen = 64});

    QCOMPARE(set.count(), 1);
    const TokenSequence got = sequence(set, 0);
    QCOMPARE(got.tokens, expected);
    for (std::size_t t = 0; t < got.trained.size(); ++t)
        QCOMPARE(got.trained[t] != 0, t >= border);
    QCOMPARE(set.trainedTokens, expected.size() - border);
    QCOMPARE(set.rows, 1U);
}

void TstTokenSet::inputsStandBetweenPromptAndResponse()
{
    const std::string path = m_folder.write("i.json",
        R"([{"instruction":"Count.","input":"3 sacks","output":"3"},
            {"instruction":"Count.\n","input":"","output":"3"}, {"instruction":"Count.","output":"3"}])");

    const TokenSet set = build(*m_tokenizer, file(path), {.seqLen = 64});

    QCOMPARE(set.count(), 3);
    const auto text = [&](std::int64_t i) {
        return m_tokenizer->decode(sequence(set, i).tokens).value();
    };
    QVERIFY(text(0).starts_with("Count.\n3 sacks\n"));
    QCOMPARE(sequence(set, 1).tokens, sequence(set, 2).tokens);
}

void TstTokenSet::promptsAreThoseOfGeneration()
{
    const std::string path =
        m_folder.write("g.jsonl", "{\"prompt\":\"Water runs\",\"response\":\"!\"}\n");
    const TokenSequence trained = sequence(build(*m_tokenizer, file(path), {.seqLen = 64}), 0);
    std::vector<TokenId> prompt;

    QVERIFY(encodePrompt(*m_tokenizer, "Water runs", prompt).ok());

    QVERIFY(trained.tokens.size() > prompt.size());
    QVERIFY(std::equal(prompt.begin(), prompt.end(), trained.tokens.begin()));
    QCOMPARE(trained.trained[prompt.size() - 1], 0);
    QCOMPARE(trained.trained[prompt.size()], 1);
}

void TstTokenSet::longRowsAreCutAndCounted()
{
    const std::string path =
        m_folder.write("l.jsonl", "{\"prompt\":\"a\",\"response\":\"" + std::string(500, 'z') +
                                      "\"}\n" + "{\"prompt\":\"a\",\"response\":\"b\"}\n");

    const TokenSet set = build(*m_tokenizer, file(path), {.seqLen = 16});

    QCOMPARE(set.count(), 2);
    QCOMPARE(set.cutRows, 1U);
    QCOMPARE(sequence(set, 0).tokens.size(), 17U);
    QCOMPARE(set.trainedTokens, trainedIn(set));
}

void TstTokenSet::rowsWithNothingToTrainAreLeftOut()
{
    const std::string path = m_folder.write(
        "e.jsonl", "{\"prompt\":\"a\",\"response\":\"\"}\n{\"prompt\":\"a\",\"response\":null}\n"
                   "{\"prompt\":\"" +
                       std::string(500, 'z') +
                       "\",\"response\":\"b\"}\n"
                       "{\"prompt\":\"\",\"response\":\"b\"}\n");

    const TokenSet set = build(*m_tokenizer, file(path), {.seqLen = 16});

    QCOMPARE(set.rows, 4U);
    QCOMPARE(set.emptyRows, 3U);
    QCOMPARE(set.count(), 1);
    QCOMPARE(set.trainedTokens, trainedIn(set));
}

void TstTokenSet::blocksShareOneTokenSoEveryTargetCountsOnce()
{
    const std::string text = readFile(m_folder.path("corpus.txt"));
    std::vector<TokenId> whole{m_tokenizer->bos()};
    for (const TokenId id : ids(text))
        whole.push_back(id);
    whole.push_back(m_tokenizer->eos());

    const TokenSet set = build(*m_tokenizer, file(m_folder.path("corpus.txt")), {.seqLen = 32});

    QCOMPARE(set.trainedTokens, whole.size() - 1);
    QCOMPARE(set.trainedTokens, trainedIn(set));
    std::vector<TokenId> joined{whole[0]};
    for (std::int64_t i = 0; i < set.count(); ++i) {
        const TokenSequence s = sequence(set, i);
        QVERIFY(s.tokens.size() <= 33 && s.tokens.size() >= 2);
        QCOMPARE(s.tokens[0], joined.back());
        QCOMPARE(s.trained[0], 0);
        joined.insert(joined.end(), s.tokens.begin() + 1, s.tokens.end());
    }
    QCOMPARE(joined, whole);
}

void TstTokenSet::standaloneBlocksPartitionTheText()
{
    const std::string text = readFile(m_folder.path("corpus.txt"));
    const std::vector<TokenId> whole = ids(text);

    const TokenSet set = build(*m_tokenizer, file(m_folder.path("corpus.txt")),
        {.seqLen = 32, .specials = false, .overlapTarget = false});

    std::vector<TokenId> joined;
    for (std::int64_t i = 0; i < set.count(); ++i) {
        const TokenSequence s = sequence(set, i);
        QVERIFY(s.tokens.size() == 32 || i + 1 == set.count());
        joined.insert(joined.end(), s.tokens.begin(), s.tokens.end());
    }
    QVERIFY(whole.size() - joined.size() <= 1); // a last block of one token has no target
    QVERIFY(std::equal(joined.begin(), joined.end(), whole.begin()));
    QCOMPARE(set.trainedTokens, joined.size() - static_cast<std::size_t>(set.count()));
}

void TstTokenSet::documentsAreSplitWithSpecialsEach()
{
    const std::string path = m_folder.write("d.txt", " one\n<|end|>\ntwo <|end|>\n");

    const TokenSet set = build(*m_tokenizer, file(path), {.seqLen = 32, .split = "<|end|>"});
    const TokenSet lines =
        build(*m_tokenizer, file(path), {.seqLen = 32, .endOfDocument = false, .perLine = true});

    QCOMPARE(set.count(), 2);
    for (std::int64_t i = 0; i < 2; ++i) {
        const TokenSequence s = sequence(set, i);
        QCOMPARE(s.tokens.front(), m_tokenizer->bos());
        QCOMPARE(s.tokens.back(), m_tokenizer->eos());
        QCOMPARE(m_tokenizer->decode(s.tokens).value(), std::string(i == 0 ? "one" : "two"));
    }
    QCOMPARE(lines.count(), 3);
    QVERIFY(sequence(lines, 0).tokens.back() != m_tokenizer->eos());
}

void TstTokenSet::firstBlocksOnlyCutDocuments()
{
    const TokenSet set = build(*m_tokenizer, file(m_folder.path("corpus.txt")),
        {.seqLen = 32, .endOfDocument = false, .firstBlockOnly = true, .overlapTarget = false});

    QCOMPARE(set.count(), 1);
    QCOMPARE(sequence(set, 0).tokens.size(), 32U);
    QCOMPARE(sequence(set, 0).tokens[0], m_tokenizer->bos());
    QCOMPARE(set.cutRows, 1U);
}

void TstTokenSet::badRowsNameTheirLine()
{
    const auto with = [&](const std::string& line) {
        const std::string path =
            m_folder.write("b.jsonl", "{\"prompt\":\"a\",\"response\":\"b\"}\n" + line + "\n");
        Result<TokenSet> set = buildTokenSet({file(path)}, *m_tokenizer, {.seqLen = 16});
        return set.ok() ? std::string("it was accepted") : set.status().message();
    };
    QVERIFY(contains(with("{\"prompt\":\"a\"}"), "b.jsonl, line 2: row 2 has no \"response\""));
    QVERIFY(contains(with("{\"prompt\":\"a\",\"response\":[1]}"), "cannot tell"));
    QVERIFY(contains(with("{\"prompt\":"), "line 2: not valid JSON"));
    QVERIFY(contains(with("{\"prompt\":\"a\",\"response\":\"b\"}\n{"), "line 3"));
    const Result<TokenSet> none =
        buildTokenSet({file(m_folder.path())}, *m_tokenizer, {.seqLen = 0});
    QVERIFY(contains(none.status().message(), "at least 1"));
}

void TstTokenSet::realPairsAreTokenised()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const auto tokenizer = Tokenizer::open(data + "/models/stories260K").value();
    const auto of = [&](const char* file, const std::map<std::string, std::string>& columns) {
        return build(
            *tokenizer, {data + "/datasets/" + file, DataFormat::Auto, columns}, {.seqLen = 256});
    };
    const TokenSet gsm = of("gsm8k/test.jsonl", {});
    QCOMPARE(gsm.rows, 1319U);
    QCOMPARE(gsm.trainedTokens, trainedIn(gsm));
    QCOMPARE(static_cast<std::uint64_t>(gsm.count()) + gsm.emptyRows, gsm.rows);
    QCOMPARE(of("instruction-data.json", {}).rows, 1100U);
    QCOMPARE(of("alpaca_en_demo.json", {}).rows, 999U);
    QCOMPARE(
        of("japanese/jcommonsenseqa_valid.json", {{"prompt", "question"}, {"response", "choice0"}})
            .rows,
        1119U);
    QCOMPARE(of("japanese/jmmlu_high_school_mathematics.csv",
                 {{"prompt", "column1"}, {"response", "column6"}})
                 .rows,
        150U);
    for (const char* chat :
        {"v1_sft_demo.jsonl", "glaive_toolcall_en_demo.json", "sharegpt_dummy_conversation.json"}) {
        Result<TokenSet> set =
            buildTokenSet({file(data + "/datasets/" + chat)}, *tokenizer, {.seqLen = 256});
        QVERIFY(!set.ok());
        QVERIFY(contains(set.status().message(), "has no chat template"));
    }
}

void TstTokenSet::storiesHaveThePublishedCounts()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const auto tokenizer = Tokenizer::open(data + "/models/stories260K").value();

    const TokenSet set = build(*tokenizer, file(data + "/datasets/tinystories_sample.txt"),
        {.seqLen = 512,
            .endOfDocument = false,
            .firstBlockOnly = true,
            .split = "<|endoftext|>",
            .overlapTarget = false});

    QCOMPARE(set.count(), 5);
    const std::size_t expected[] = {374, 330, 223, 425, 457};
    for (std::int64_t i = 0; i < 5; ++i)
        QCOMPARE(sequence(set, i).tokens.size(), expected[i]);
    const TokenSet blocks = build(*tokenizer, file(data + "/datasets/tinystories_197k.txt"),
        {.seqLen = 512, .specials = false, .overlapTarget = false});
    QCOMPARE(blocks.sequences.tokens(), 100702U);
}

MR_TEST(TstTokenSet)

} // namespace mr::test::tst_token_set

#include "tst_token_set.moc"
