// ParallelTokenSet: the same set with any number of threads, and the first bad row named.

#include "core/data/batch_stream.h"
#include "core/data/data_files.h"
#include "core/tokenizer/small_tokenizer.h"
#include "support/test_room.h"

#include <nlohmann/json.hpp>

namespace mr::test::tst_parallel_token_set {

namespace {

using Json = nlohmann::ordered_json;

std::string words(int count, int seed)
{
    static constexpr std::array kWords{"the", "miller", "counts", "grain", "water", "?", "3"};
    std::string out;
    auto at = static_cast<std::size_t>(seed);
    for (int i = 0; i < count; ++i) {
        at = at * 31 + 7; // wraps
        out += std::string(kWords[at / 64 % kWords.size()]) + " ";
    }
    return out;
}

// Rows of many lengths: some are cut, some have no answer, one is longer than all others together.
std::string manyRows()
{
    std::string out;
    for (int i = 0; i < 1000; ++i) {
        const int length = i == 777 ? 40'000 : i * 7 % 60;
        out += Json{{"prompt", words(i % 5, i)}, {"response", words(length, i)}}.dump() + "\n";
    }
    return out;
}

std::string chatRow(const std::string& content)
{
    return Json{{"messages", {{{"role", "user"}, {"content", "a"}},
                                 {{"role", "assistant"}, {"content", content}}}}}
               .dump() +
           "\n";
}

} // namespace

class TstParallelTokenSet : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void theSetDoesNotDependOnTheThreads();
    void theFirstBadRowIsNamed();
    void aBadRowComesBeforeAnUnreadableOneBehindIt();

private:
    Result<TokenSet> build(const std::string& rows, int threads) const
    {
        return buildTokenSet({{m_folder.write("rows.jsonl", rows), DataFormat::Auto, {}}},
            *m_tokenizer,
            {.seqLen = 32, .modelFolder = std::string(m_folder.path()), .threads = threads});
    }
    QString error(const std::string& rows, int threads) const
    {
        const Result<TokenSet> set = build(rows, threads);
        return QString::fromStdString(set.ok() ? "it was accepted" : set.status().message());
    }

    Folder m_folder;
    std::unique_ptr<Tokenizer> m_tokenizer;
};

void TstParallelTokenSet::initTestCase()
{
    trainTokenizer(m_folder);
    m_tokenizer = Tokenizer::open(m_folder.path()).value();
    m_folder.write("tokenizer_config.json",
        Json{{"chat_template", "{% for m in messages %}{% if m.content == 'bad' %}"
                               "{{ raise_exception('a bad turn') }}{% endif %}"
                               "{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"
                               "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"}}
            .dump());
}

void TstParallelTokenSet::theSetDoesNotDependOnTheThreads()
{
    const std::string rows = manyRows();
    const TokenSet one = build(rows, 1).value();
    QCOMPARE(one.rows, 1000U);
    QVERIFY(one.cutRows > 0 && one.emptyRows > 0);

    const TokenSet set = build(rows, 3).value();

    QCOMPARE(set.rows, one.rows);
    QCOMPARE(set.cutRows, one.cutRows);
    QCOMPARE(set.emptyRows, one.emptyRows);
    QCOMPARE(set.trainedTokens, one.trainedTokens);
    QCOMPARE(set.count(), one.count());
    TokenSequence a;
    TokenSequence b;
    for (std::int64_t i = 0; i < set.count(); ++i) {
        QVERIFY(one.sequences.read(i, a).ok() && set.sequences.read(i, b).ok());
        QVERIFY2(a.tokens == b.tokens && a.trained == b.trained, qPrintable(QString::number(i)));
    }
}

void TstParallelTokenSet::theFirstBadRowIsNamed()
{
    std::string rows;
    for (int i = 1; i <= 400; ++i)
        rows += chatRow(i == 290 || i == 291 || i == 399 ? "bad" : words(i % 9, i));
    for (const int threads : {1, 2, 5})
        QVERIFY2(error(rows, threads).contains("rows.jsonl, line 290: "),
            qPrintable(error(rows, threads)));
    QVERIFY(error(rows, 2).contains("a bad turn"));
    QCOMPARE(error(rows, 2).count("rows.jsonl"), 1);
}

void TstParallelTokenSet::aBadRowComesBeforeAnUnreadableOneBehindIt()
{
    std::string rows; // more than are looked at for the columns
    for (int i = 1; i <= 150; ++i)
        rows += chatRow("fine");
    const std::string unreadable = "{\"messages\":\n";
    for (const int threads : {1, 3}) {
        QVERIFY2(error(rows + chatRow("bad") + unreadable, threads).contains("line 151: "),
            qPrintable(error(rows + chatRow("bad") + unreadable, threads)));
        QVERIFY2(error(rows + unreadable, threads).contains("line 151: not valid"),
            qPrintable(error(rows + unreadable, threads)));
    }
}

MR_TEST(TstParallelTokenSet)

} // namespace mr::test::tst_parallel_token_set

#include "tst_parallel_token_set.moc"
