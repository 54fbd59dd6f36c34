// Rows that cannot be read: counted and refused together, or left out and listed.

#include "core/data/bad_rows.h"
#include "core/data/chat_case.h"
#include "support/test_room.h"

#include <millrace/library.h>

namespace mr::test::tst_bad_rows {

namespace {

// Good, then one bad row of each kind that JSON lines may have.
const char* const kRows = "{\"prompt\":\"a\",\"response\":\"b\"}\n"
                          "{\"prompt\":\"c\",\"response\":\n"
                          "{\"prompt\":\"d\",\"response\":\"\xFF\"}\n"
                          "[\"e\"]\n"
                          "{\"prompt\":\"f\"}\n"
                          "{\"prompt\":\"g\",\"response\":\"h\"}\n";

struct Reading {
    Result<TokenSet> set;
    std::string log;
    std::string message() const { return set.ok() ? "it was accepted" : set.status().message(); }
};

Reading read(const std::string& path, bool skip, const std::string& model = {}, int threads = 1)
{
    DataSource source{path, DataFormat::Auto, {}};
    source.skipBadRows = skip;
    TokenSetOptions options{.seqLen = 64, .modelFolder = model, .threads = threads};
    Reading out{buildTokenSet({source}, ByteTokenizer(), options), {}};
    if (out.set.ok() && !out.set.value()
                             .badRows
                             ->readLog([&](std::span<const std::byte> piece) {
                                 out.log.append(
                                     reinterpret_cast<const char*>(piece.data()), piece.size());
                                 return Status();
                             })
                             .ok())
        qFatal("the list cannot be read");
    return out;
}

} // namespace

class TstBadRows : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aRefusalNamesTheFirstAndCountsThemAll();
    void oneBadRowIsSaidToBeTheOnlyOne();
    void rowsAreLeftOutAndListed();
    void rowsOfCsvAndListsAreLeftOut();
    void rowsThatTheTemplateCannotWriteAreLeftOut();
    void brokenFilesAreRefusedAnyway();
    void rowsThatMustNotBeTrainedAreRefusedAnyway();
    void aLongListIsKept();
    void inspectingSaysTheSame();
    void theRunRecordKeepsTheChoice();
    void excludedRowsAreLeftOutWhateverTheyHold();
    void theRunRecordKeepsExcludedRows();

private:
    Folder m_folder;
};

void TstBadRows::aRefusalNamesTheFirstAndCountsThemAll()
{
    const std::string said = read(m_folder.write("r.jsonl", kRows), false).message();

    QVERIFY(contains(said, "r.jsonl, line 2: not valid JSON (row 2)"));
    QVERIFY(
        contains(said, "4 rows of this file cannot be read (columns 1, json 1, shape 1, utf8 1)"));
    QVERIFY(contains(said, "--skip-bad-rows leaves them out"));
}

void TstBadRows::oneBadRowIsSaidToBeTheOnlyOne()
{
    const std::string said =
        read(m_folder.write("r.csv", "prompt,response\na,b\nc\nd,e\n"), false).message();

    QVERIFY(contains(said, "r.csv, line 3: has 1 cells"));
    QVERIFY(contains(said, "all other rows of this file can be read; --skip-bad-rows leaves it"));
}

void TstBadRows::rowsAreLeftOutAndListed()
{
    const std::string path = m_folder.write("r.jsonl", kRows);
    for (const int threads : {1, 3}) {
        Reading reading = read(path, true, {}, threads);

        QVERIFY2(reading.set.ok(), reading.message().c_str());
        QCOMPARE(reading.set.value().count(), 2);
        QCOMPARE(reading.set.value().rows, 2U);
        QCOMPARE(faultList(reading.set.value().badRows->skipped()),
            std::string("columns 1, json 1, shape 1, utf8 1"));
        const auto lines = QByteArray::fromStdString(reading.log).split('\n');
        QCOMPARE(lines.size(), 5); // the last one is empty
        const Json second = Json::parse(lines[1].toStdString());
        QCOMPARE(second["line"], Json(3));
        QCOMPARE(second["row"], Json(3));
        QCOMPARE(second["reason"], Json("utf8"));
        QCOMPARE(second["file"], Json(path));
        QVERIFY(contains(second["message"].get<std::string>(), "not valid UTF-8"));
    }
}

void TstBadRows::rowsOfCsvAndListsAreLeftOut()
{
    std::string rows = "prompt,response\n";
    constexpr int kGood = 20'000; // a NUL in the first 64 KiB would mean a binary file
    for (int i = 0; i < kGood; ++i)
        rows += "a,b\n";
    rows += "c\nd,\xFF\ne," + std::string("\0\nf,g\n", 6);
    Reading csv = read(m_folder.write("r.csv", rows), true);
    QVERIFY2(csv.set.ok(), csv.message().c_str());
    QCOMPARE(csv.set.value().count(), kGood + 1);
    QCOMPARE(faultList(csv.set.value().badRows->skipped()), std::string("cells 1, nul 1, utf8 1"));

    Reading list =
        read(m_folder.write("r.json", "[{\"prompt\":\"a\",\"response\":\"b\"},\n{\"prompt\" 1},\n"
                                      "{\"prompt\":\"c\",\"response\":\"d\"}]"),
            true);
    QVERIFY2(list.set.ok(), list.message().c_str());
    QCOMPARE(list.set.value().count(), 2);
    QVERIFY(contains(list.log, "\"line\":2"));
}

void TstBadRows::rowsThatTheTemplateCannotWriteAreLeftOut()
{
    const Case chat("{% for m in messages %}{% if m.content == 'bad' %}"
                    "{{ raise_exception('a bad turn') }}{% endif %}"
                    "{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"
                    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}");
    std::string rows;
    for (int i = 0; i < 100; ++i)
        rows +=
            Json{{"messages", {{{"role", "user"}, {"content", "a"}},
                                  {{"role", "assistant"}, {"content", i % 40 == 7 ? "bad" : "b"}}}}}
                .dump() +
            "\n";
    const std::string path = chat.folder.write("chat.jsonl", rows);

    for (const int threads : {1, 3}) {
        Reading skipped = read(path, true, chat.folder.path(), threads);
        QVERIFY2(skipped.set.ok(), skipped.message().c_str());
        QCOMPARE(skipped.set.value().count(), 97);
        QCOMPARE(skipped.set.value().rows, 97U);
        QCOMPARE(faultList(skipped.set.value().badRows->skipped()), std::string("template 3"));
        const std::string said = read(path, false, chat.folder.path(), threads).message();
        QVERIFY(contains(said, "chat.jsonl, line 8: "));
        QVERIFY(contains(said, "3 rows of this file cannot be read (template 3)"));
    }
}

void TstBadRows::brokenFilesAreRefusedAnyway()
{
    const std::string good = "{\"prompt\":\"a\",\"response\":\"b\"}";
    for (const auto& [name, text] :
        std::vector<std::pair<std::string, std::string>>{{"a.json", "[" + good + ",\n" + good},
            {"b.json", "[" + good + "] x"}, {"c.csv", "prompt,response\na,\"b\nc,d\n"},
            {"d.csv", "prompt,response\n\"a\"b,c\n"}, {"e.txt", "some text \xFF"}})
        QVERIFY2(!read(m_folder.write(name, text), true).set.ok(), name.c_str());
}

void TstBadRows::rowsThatMustNotBeTrainedAreRefusedAnyway()
{
    std::string rows;
    for (int i = 0; i < 150; ++i) // more than the columns are chosen by
        rows += "{\"prompt\":\"a\",\"response\":\"b\",\"label\":true}\n";
    rows += "{\"prompt\":\"a\",\"response\":\"b\",\"label\":false}\n";

    QVERIFY(!read(m_folder.write("l.jsonl", rows), true).set.ok());
}

void TstBadRows::aLongListIsKept()
{
    BadRows bad;
    DataSource source;
    source.path = "rows.jsonl";
    source.skipBadRows = true;
    const std::string message(1000, 'm');
    for (int i = 1; i <= 5000; ++i)
        QVERIFY(bad.add(source, {i, i, RowFault::Json, message}).ok());

    std::size_t lines = 0;
    QVERIFY(bad.readLog([&](std::span<const std::byte> piece) {
                   lines += static_cast<std::size_t>(
                       std::count(piece.begin(), piece.end(), std::byte{'\n'}));
                   return Status();
               })
                .ok());
    QCOMPARE(lines, 5000U);
    QCOMPARE(bad.skipped().at("json"), 5000);
    QVERIFY(!bad.refuses() && bad.refusal().ok());
}

void TstBadRows::inspectingSaysTheSame()
{
    DataSource source{m_folder.write("r.jsonl", kRows), DataFormat::Auto, {}};
    const DatasetInfo refused = inspectDataset(source, {}, 32, 3).value();
    QCOMPARE(refused.problems.size(), 1U);
    QVERIFY(contains(refused.problems[0], "4 rows of this file cannot be read"));
    QCOMPARE(
        faultList(refused.rowsRefused.counts), std::string("columns 1, json 1, shape 1, utf8 1"));
    QVERIFY(
        refused.rowsRefused.isAll && refused.problems[0].starts_with(refused.rowsRefused.first));

    source.skipBadRows = true;
    const DatasetInfo info = inspectDataset(source, {}, 32, 3).value();
    QVERIFY(info.problems.empty());
    QCOMPARE(info.rows, 2);
    QCOMPARE(info.rowsSkipped.at("json"), 1);
    QVERIFY(info.rowsRefused.counts.empty());
    QCOMPARE(info.reading, std::string("JSON lines"));
}

void TstBadRows::theRunRecordKeepsTheChoice()
{
    RunSpec spec;
    spec.data.push_back({"rows.jsonl", DataFormat::Auto, {}});
    QVERIFY(toJson(spec).find("skip_bad_rows") == std::string::npos); // as it was before
    spec.data[0].skipBadRows = true;

    QVERIFY(runSpecFromJson(toJson(spec)).value().data[0].skipBadRows);
}

void TstBadRows::excludedRowsAreLeftOutWhateverTheyHold()
{
    const std::string good = "{\"prompt\":\"a\",\"response\":\"b\"}\n";
    DataSource source{
        m_folder.write("e.jsonl", good + "not json\n" + good + good), DataFormat::Auto, {}};
    source.excluded = RowList({2, 4, 9});

    const DatasetInfo info = inspectDataset(source, {}, 32, 3).value();

    QVERIFY(info.problems.empty());
    QCOMPARE(info.rows, 2);
    QCOMPARE(info.rowsExcluded, 2);
    QVERIFY(info.rowsSkipped.empty());

    source.excludedOf = info.bytes;
    QVERIFY(inspectDataset(source, {}, 32, 3).value().problems.empty());
    source.excludedOf = info.bytes + 1; // the file was another one
    const DatasetInfo changed = inspectDataset(source, {}, 32, 3).value();
    QCOMPARE(changed.problems.size(), 1U);
    QVERIFY(contains(changed.problems[0], "when rows of it were excluded"));
}

void TstBadRows::theRunRecordKeepsExcludedRows()
{
    RunSpec spec;
    spec.data.push_back({"rows.jsonl", DataFormat::Auto, {}});
    QVERIFY(toJson(spec).find("excluded") == std::string::npos); // as it was before
    spec.data[0].excluded = RowList({3, 4, 7});
    spec.data[0].excludedOf = 4'711;

    const std::string json = toJson(spec);
    QVERIFY(runSpecFromJson(json).value().data[0] == spec.data[0]);
    std::string broken = json;
    broken.replace(broken.find("3-4,7"), 5, "3-4,x");
    const auto refused = runSpecFromJson(broken);
    QVERIFY(!refused.ok());
    QVERIFY(contains(refused.status().message(), "excluded_rows"));
}

MR_TEST(TstBadRows)

} // namespace mr::test::tst_bad_rows

#include "tst_bad_rows.moc"
