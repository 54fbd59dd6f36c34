// Files with rows of every fault: each is found, in its row, with any number of threads.

#include "core/tokenizer/small_tokenizer.h"
#include "support/test_room.h"

#include <millrace/data_checks.h>

#include <set>

namespace mr::test::tst_data_checks {
namespace {

std::string pair(const std::string& prompt, const std::string& response)
{
    return "{\"prompt\":\"" + prompt + "\",\"response\":\"" + response + "\"}\n";
}

std::string chat(const std::string& turns)
{
    return "{\"messages\":[" + turns + "]}\n";
}

std::string turn(const std::string& role, const std::string& content)
{
    return "{\"role\":\"" + role + "\",\"content\":\"" + content + "\"}";
}

std::string longText(int seed)
{
    std::string out;
    for (int i = 0; i < 40; ++i)
        out += "sack " + std::to_string(seed * 1'000 + i) + " ";
    return out;
}

using Rows = std::vector<std::int64_t>;

Rows rowsOf(const DataChecks& checks, RowCheck check)
{
    Rows rows;
    for (const CheckedRow& row : checks.of(check))
        rows.push_back(row.row);
    return rows;
}

} // namespace

class TstDataChecks : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { trainTokenizer(m_folder); }
    void everyFaultIsFoundInItsRow();
    void conversationsAreCheckedWithoutATemplate();
    void repeatsAndEvaluationRowsNameTheOther();
    void threadsChangeNothing();
    void lengthsTellWhatALengthKeeps();
    void textsInPartsAreOneRow();
    void aModelWithoutATokenizerIsAProblem();
    void theCheckCanBeStopped();
    void rowsAreReadAgainAsText();
    void aFileThatIsNotThereIsAnError();

private:
    CheckRequest requestFor(const std::string& path, std::int64_t seqLen = 32) const
    {
        CheckRequest request;
        request.source.path = path;
        request.modelDir = m_folder.path();
        request.seqLen = seqLen;
        request.threads = 2;
        return request;
    }
    DataChecks check(const CheckRequest& request) const
    {
        Result<DataChecks> checks = checkDataset(request);
        if (!checks.ok())
            qFatal("%s", checks.status().message().c_str());
        return std::move(checks).value();
    }

    Folder m_folder;
};

void TstDataChecks::everyFaultIsFoundInItsRow()
{
    const std::string path = m_folder.write(
        "faults.jsonl", pair("a", "b") +                       // 1
                            pair("a", "") +                    // 2: an empty answer
                            "not json\n" +                     // 3
                            pair("a", std::string(300, 'z')) + // 4: cut
                            pair(std::string(300, 'y'), "b") + // 5: the answer is cut off
                            pair("cafÃ©", "b") +               // 6: misread
                            pair("a", "b") +                   // 7: as row 1
                            "{\"prompt\":\"a\",\"response\":\"\xC3\"}\n" + // 8: not UTF-8
                            pair("c", "d"));                               // 9

    const DataChecks checks = check(requestFor(path));

    QVERIFY(checks.problems.empty());
    QCOMPARE(checks.rows, 9);
    QCOMPARE(rowsOf(checks, RowCheck::Unreadable), (Rows{3, 8}));
    QCOMPARE(checks.of(RowCheck::Unreadable)[0].why, std::string_view("not JSON"));
    QCOMPARE(checks.of(RowCheck::Unreadable)[1].why, std::string_view("not UTF-8"));
    QCOMPARE(checks.of(RowCheck::Unreadable)[1].line, 8);
    QCOMPARE(rowsOf(checks, RowCheck::Untrained), (Rows{2, 5}));
    QCOMPARE(checks.of(RowCheck::Untrained)[1].why,
        std::string_view("what comes before the answer fills the sequence"));
    QCOMPARE(rowsOf(checks, RowCheck::Cut), (Rows{4, 5}));
    QCOMPARE(rowsOf(checks, RowCheck::EmptyTurn), (Rows{2}));
    QCOMPARE(rowsOf(checks, RowCheck::Encoding), (Rows{6}));
    QCOMPARE(rowsOf(checks, RowCheck::Duplicate), (Rows{7}));
    QCOMPARE(checks.of(RowCheck::Duplicate)[0].other, 1);
    QVERIFY(checks.of(RowCheck::RoleOrder).empty());
    QVERIFY(checks.of(RowCheck::InEvaluation).empty());
    QCOMPARE(checks.longest.front().row, 5);
    QVERIFY(checks.longest.front().tokens > 33);
}

void TstDataChecks::conversationsAreCheckedWithoutATemplate()
{
    const std::string path = m_folder.write("chats.jsonl",
        chat(turn("user", "q") + "," + turn("assistant", "a")) +
            chat(turn("user", "q") + "," + turn("user", "q") + "," + turn("assistant", "a")) +
            chat(turn("user", "q") + "," + turn("assistant", "")));

    const DataChecks checks = check(requestFor(path));

    QCOMPARE(checks.problems.size(), 1U); // there is no template
    QCOMPARE(checks.seqLen, 0);
    QCOMPARE(rowsOf(checks, RowCheck::RoleOrder), (Rows{2}));
    QCOMPARE(rowsOf(checks, RowCheck::EmptyTurn), (Rows{3}));

    CheckRequest request = requestFor(path, 512);
    request.source.columns["chat_template"] = "chatml";
    const DataChecks rendered = check(request);
    QVERIFY(rendered.problems.empty());
    QCOMPARE(rendered.seqLen, 512);
    QCOMPARE(rendered.longest.size(), 3U);
}

void TstDataChecks::repeatsAndEvaluationRowsNameTheOther()
{
    const std::string training = m_folder.write("training.jsonl",
        pair(longText(1), "yes") + pair(longText(1) + "more", "yes") + pair(longText(2), "no") +
            pair(longText(3), "no") + pair("short", "row"));
    CheckRequest request = requestFor(training, 2'048);
    request.evaluation = DataSource{};
    request.evaluation->path = m_folder.write("evaluation.jsonl",
        pair("x", "y") + pair("short", "row") + pair(longText(3) + "more", "no"));

    const DataChecks checks = check(request);

    QCOMPARE(checks.rows, 5);
    QCOMPARE(rowsOf(checks, RowCheck::NearDuplicate), (Rows{2}));
    QCOMPARE(checks.of(RowCheck::NearDuplicate)[0].other, 1);
    QCOMPARE(rowsOf(checks, RowCheck::InEvaluation), (Rows{4, 5}));
    QCOMPARE(checks.of(RowCheck::InEvaluation)[0].other, 3);
    QCOMPARE(checks.of(RowCheck::InEvaluation)[1].other, 2);
    QVERIFY(checks.of(RowCheck::Duplicate).empty());
}

void TstDataChecks::threadsChangeNothing()
{
    std::string rows;
    for (int i = 0; i < 9'000; ++i) // more than a batch
        rows += pair("question " + std::to_string(i % 5'000), i % 700 == 0 ? "" : "an answer");
    CheckRequest request = requestFor(m_folder.write("many.jsonl", rows));
    request.threads = 1;
    const DataChecks one = check(request);
    request.threads = 5;
    const DataChecks five = check(request);

    QCOMPARE(one.rows, 9'000);
    QCOMPARE(five.rows, one.rows);
    QVERIFY(!one.of(RowCheck::Duplicate).empty());
    for (std::size_t i = 0; i < kRowChecks; ++i)
        QCOMPARE(rowsOf(five, static_cast<RowCheck>(i)), rowsOf(one, static_cast<RowCheck>(i)));
    for (std::size_t i = 0; i < one.longest.size(); ++i)
        QCOMPARE(five.longest[i].row, one.longest[i].row);
}

void TstDataChecks::lengthsTellWhatALengthKeeps()
{
    const std::vector<LengthCount> lengths{{10, 3}, {33, 2}, {100, 1}};
    QCOMPARE(effectOfLength(lengths, 32).cutRows, 1); // 33 tokens are 32 inputs with their targets
    QCOMPARE(effectOfLength(lengths, 32).tokens, 196);
    QCOMPARE(effectOfLength(lengths, 32).kept, 129);
    QCOMPARE(effectOfLength(lengths, 99).cutRows, 0);
    QCOMPARE(effectOfLength({}, 99).tokens, 0);

    const std::string path =
        m_folder.write("lengths.jsonl", pair("a", "b") + pair("a", "c") + pair("a", longText(4)));
    const DataChecks checks = check(requestFor(path));
    std::int64_t rows = 0;
    for (const LengthCount& one : checks.lengths)
        rows += one.rows;
    QCOMPARE(rows, 3);
    QCOMPARE(effectOfLength(checks.lengths, checks.seqLen).cutRows,
        static_cast<std::int64_t>(checks.of(RowCheck::Cut).size()));
}

void TstDataChecks::textsInPartsAreOneRow()
{
    std::string text;
    while (text.size() < (std::size_t{5} << 19)) // read in two parts
        text += "The miller counts the sacks of flour and the turns of the wheel. ";
    const DataChecks good = check(requestFor(m_folder.write("long.txt", text)));
    QCOMPARE(good.rows, 1);
    QVERIFY(good.of(RowCheck::Untrained).empty());
    QVERIFY(good.of(RowCheck::Encoding).empty());
    QVERIFY(good.lengths.empty()); // no length cuts a text

    CheckRequest request = requestFor(m_folder.write("bad.txt", "cafÃ© " + text));
    request.modelDir.clear();
    const DataChecks bad = check(request);
    QCOMPARE(rowsOf(bad, RowCheck::Encoding), (Rows{1}));
    QCOMPARE(bad.of(RowCheck::Encoding)[0].line, 1);
}

void TstDataChecks::aModelWithoutATokenizerIsAProblem()
{
    const Folder empty;
    CheckRequest request =
        requestFor(m_folder.write("some.jsonl", pair("a", "b") + pair("a", "b")));
    request.modelDir = empty.path();
    const DataChecks checks = check(request);
    QCOMPARE(checks.problems.size(), 1U);
    QCOMPARE(rowsOf(checks, RowCheck::Duplicate), (Rows{2}));
    QVERIFY(checks.longest.empty());
}

void TstDataChecks::theCheckCanBeStopped()
{
    std::string rows;
    for (int i = 0; i < 20'000; ++i)
        rows += pair("question " + std::to_string(i), "answer");
    CheckRequest request = requestFor(m_folder.write("stopped.jsonl", rows));
    std::int64_t seen = 0;
    request.onRows = [&seen](std::int64_t done) {
        seen = done;
        return false;
    };
    const Result<DataChecks> checks = checkDataset(request);
    QVERIFY(!checks.ok());
    QCOMPARE(checks.status().kind(), ErrorKind::Cancelled);
    QVERIFY(seen > 0 && seen < 20'000);
}

void TstDataChecks::rowsAreReadAgainAsText()
{
    DataSource source;
    source.path = m_folder.write("texts.jsonl", pair("a", "b\\nc") + "not json\n" +
                                                    pair("d", std::string(100, 'e')) +
                                                    pair("f", "g") + "{\"broken");
    Result<std::vector<RowText>> texts = readRowTexts(source, RowList({1, 2, 3}), 40);
    QVERIFY(texts.ok());
    QCOMPARE(texts.value().size(), 2U);
    QCOMPARE(texts.value()[0].text, std::string("prompt: a | response: b c"));
    QCOMPARE(texts.value()[1].row, 3);
    QVERIFY(contains(texts.value()[1].text, "prompt: d | response"));
    QVERIFY(texts.value()[1].text.size() < 50);
}

void TstDataChecks::aFileThatIsNotThereIsAnError()
{
    const Result<DataChecks> checks = checkDataset(requestFor(m_folder.path("none.jsonl")));
    QVERIFY(!checks.ok());
    QVERIFY(contains(checks.status().message(), "none.jsonl"));

    CheckRequest wrong = requestFor(m_folder.path("none.jsonl"), 0);
    QCOMPARE(checkDataset(wrong).status().kind(), ErrorKind::InvalidArgument);
}

MR_TEST(TstDataChecks)

} // namespace mr::test::tst_data_checks

#include "tst_data_checks.moc"
