// Parquet files as datasets: the records of the same rows as JSON lines, and messages that name
// rows.
//
// Goldens: tests/reference/make_parquet_goldens.py.

#include "core/data/compressed_case.h"
#include "core/data/data_files.h"
#include "core/data/documents.h"
#include "core/data/record_reader.h"
#include "support/test_room.h"

#include <millrace/library.h>

namespace mr::test::tst_parquet_records {

namespace {

std::string golden(const std::string& name)
{
    return qEnvironmentVariable("MILLRACE_SOURCE").toStdString() + "/tests/core/parquet/goldens/" +
           name;
}

// Rows as "name=kind text|...", a line each, or the refusal.
std::string rowsOf(const std::string& path, const RecordOptions& options = {})
{
    std::string out;
    const Status status = readRecords(path, options, [&](const Record& record) {
        out += std::to_string(record.row) + ":";
        for (const Cell& cell : record.cells)
            out += " " + cell.name + "=" + std::to_string(static_cast<int>(cell.kind)) + cell.text;
        out += "\n";
        return Status();
    });
    return status.ok() ? out : out + "! " + status.message();
}

} // namespace

class TstParquetRecords : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void recordsAreThoseOfTheTwin_data();
    void recordsAreThoseOfTheTwin();
    void documentsAreThoseOfTheTwin();
    void messagesNameTheRow();
    void badRowsAreCounted();
    void theFormatIsFoundAndSaid();
    void anEmptyTableHoldsNoRows();

private:
    Folder m_folder;
};

void TstParquetRecords::recordsAreThoseOfTheTwin_data()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"snappy", "zstd_v2", "delta", "messages", "deep", "kinds"})
        QTest::newRow(name) << QString::fromLatin1(name);
}

void TstParquetRecords::recordsAreThoseOfTheTwin()
{
    QFETCH(QString, name);
    const std::string parquet = rowsOf(golden(name.toStdString() + ".parquet"));
    QVERIFY(parquet.find("! ") == std::string::npos && parquet.size() > 100);
    QCOMPARE(parquet, rowsOf(golden(name.toStdString() + ".jsonl")));
}

void TstParquetRecords::documentsAreThoseOfTheTwin()
{
    const auto documents = [](const std::string& path) {
        DataSource source;
        source.path = path;
        source.skipBadRows = true;
        DatasetShape shape;
        Status status = findShape(source, shape);
        std::string out = status.message();
        const auto sink = [&](const Document& document) {
            out += document.prompt + "|" + document.response + "|" + document.chat + "\n";
            return Status();
        };
        if (status.ok())
            status = readDocuments(source, shape, {}, sink, [](const BadRow&) { return Status(); });
        return out + status.message();
    };
    QCOMPARE(documents(golden("messages.parquet")), documents(golden("messages.jsonl")));
    QVERIFY(contains(documents(golden("messages.parquet")), "turn 1 of 2"));
}

void TstParquetRecords::messagesNameTheRow()
{
    DataSource source;
    source.path = golden("messages.parquet");
    const DatasetInfo info = inspectDataset(source, {}, 16, 0, {}).value();
    QVERIFY(!info.problems.empty());
    QVERIFY(contains(info.problems.front(), "messages.parquet, row "));
    QVERIFY(info.problems.front().find(", line ") == std::string::npos);
}

void TstParquetRecords::badRowsAreCounted()
{
    RecordOptions options;
    std::vector<BadRow> bad;
    options.onBadRow = [&](const BadRow& row) {
        bad.push_back(row);
        return Status();
    };
    QCOMPARE(rowsOf(golden("refused/bytes.parquet"), options),
        std::string("1: prompt=0a picture=0text\n"));
    QCOMPARE(bad.size(), 1U);
    QCOMPARE(bad.front().row, 2);
    QCOMPARE(bad.front().line, 0);
    QCOMPARE(bad.front().fault, RowFault::Utf8);
    QVERIFY(contains(bad.front().message,
        "bytes.parquet, row 2: column \"picture\" holds bytes that are not UTF-8 text"));
}

void TstParquetRecords::theFormatIsFoundAndSaid()
{
    const std::string bytes = readFile(golden("snappy.parquet"));
    const std::string renamed = m_folder.write("rows.jsonl", bytes);
    QCOMPARE(findFormat(renamed, DataFormat::Auto).value(), DataFormat::Parquet);
    QCOMPARE(describeReading(renamed, {}), std::string("Parquet"));
    QVERIFY(contains(findFormat(renamed, DataFormat::Text).status().message(),
        "is a Parquet file; leave out --format, or say --format parquet"));
    const std::string text = m_folder.write("rows.parquet", "Once upon a time");
    QVERIFY(contains(
        findFormat(text, DataFormat::Parquet).status().message(), "is not a Parquet file"));
    QCOMPARE(findFormat(text, DataFormat::Auto).value(), DataFormat::Text);
    QVERIFY(contains(
        rowsOf(m_folder.write("rows.parquet.gz", gzip(bytes))), "holds a Parquet file within"));
    QCOMPARE(parseDataFormat("parquet").value(), DataFormat::Parquet);
}

void TstParquetRecords::anEmptyTableHoldsNoRows()
{
    DataSource source;
    source.path = golden("empty.parquet");
    DatasetShape shape;
    QVERIFY(contains(findShape(source, shape).message(), "empty.parquet: holds no rows"));
}

MR_TEST(TstParquetRecords)

} // namespace mr::test::tst_parquet_records

#include "tst_parquet_records.moc"
