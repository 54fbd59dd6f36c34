// Parquet files of another writer beside the rows that they were made from; damage; what is
// refused.
//
// Goldens: tests/reference/make_parquet_goldens.py.

#include "core/parquet/parquet_rows.h"
#include "support/test_room.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mr::test::tst_parquet_rows {

namespace {

QString goldens()
{
    return qEnvironmentVariable("MILLRACE_SOURCE") + QStringLiteral("/tests/core/parquet/goldens");
}

QByteArray contentsOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

struct Rows {
    std::vector<std::string> json;
    std::string notText;
    Status status;
};

Rows rowsOf(const QString& path)
{
    Rows out;
    out.status = readParquetRows(path.toStdString(), [&](const ParquetRow& row) {
        out.json.push_back(row.json);
        out.notText += row.notText;
        return row.row == static_cast<std::int64_t>(out.json.size())
                   ? Status()
                   : Status::error(ErrorKind::Internal, "rows out of order");
    });
    return out;
}

bool says(const std::string& text, const char* part)
{
    const bool found = text.find(part) != std::string::npos;
    if (!found)
        qWarning("\"%s\" lacks \"%s\"", text.c_str(), part);
    return found;
}

} // namespace

class TstParquetRows : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void rowsAreThoseThatWereWritten_data();
    void rowsAreThoseThatWereWritten();
    void aFileThatIsCutOffIsRefused();
    void damageIsNeverAnotherRowOfACheckedPage();
    void damageEndsInAnAnswer_data();
    void damageEndsInAnAnswer();
    void whatIsNotReadIsNamed();
    void bytesThatAreNoTextNameTheirColumn();
    void aStatusOfTheSinkEndsTheReading();

private:
    QString write(const QByteArray& bytes) const
    {
        QFile file(m_dir.filePath(QStringLiteral("d.parquet")));
        // Not cut to nothing first: thousands of new files would wait for the disk.
        if (!file.open(QIODevice::ReadWrite) || file.write(bytes) != bytes.size() ||
            !file.resize(bytes.size()))
            qFatal("cannot write a test file");
        return file.fileName();
    }

    QTemporaryDir m_dir;
};

void TstParquetRows::rowsAreThoseThatWereWritten_data()
{
    QTest::addColumn<QString>("path");
    const QStringList names = QDir(goldens()).entryList({QStringLiteral("*.parquet")});
    QVERIFY(names.size() >= 16);
    for (const QString& name : names)
        QTest::newRow(qPrintable(name)) << goldens() + QLatin1Char('/') + name;
}

void TstParquetRows::rowsAreThoseThatWereWritten()
{
    QFETCH(QString, path);
    const Rows rows = rowsOf(path);
    QVERIFY2(rows.status.ok(), rows.status.message().c_str());
    QVERIFY(rows.notText.empty());
    QString twin = path;
    twin.replace(QStringLiteral(".parquet"), QStringLiteral(".jsonl"));
    QList<QByteArray> lines = contentsOf(twin).split('\n');
    lines.removeLast();
    QCOMPARE(rows.json.size(), static_cast<std::size_t>(lines.size()));
    for (std::size_t i = 0; i < rows.json.size(); ++i) {
        const auto wanted =
            nlohmann::ordered_json::parse(lines[static_cast<qsizetype>(i)].toStdString());
        QCOMPARE(nlohmann::ordered_json::parse(rows.json[i]).dump(), wanted.dump());
    }
}

void TstParquetRows::aFileThatIsCutOffIsRefused()
{
    const QByteArray whole = contentsOf(goldens() + QStringLiteral("/messages.parquet"));
    for (qsizetype bytes = 4; bytes < whole.size(); ++bytes) {
        const Rows rows = rowsOf(write(whole.left(bytes)));
        QVERIFY(rows.json.empty());
        QVERIFY(says(rows.status.message(), "d.parquet: is a Parquet file that is cut off; "
                                            "download or copy it again"));
    }
}

// Pages with a checksum: whatever changes in front of the footer is noticed, or is the head of a
// page and changes no row.
void TstParquetRows::damageIsNeverAnotherRowOfACheckedPage()
{
    const QByteArray whole = contentsOf(goldens() + QStringLiteral("/delta_v2.parquet"));
    const Rows wanted = rowsOf(write(whole));
    QVERIFY(wanted.status.ok());
    std::uint32_t footer = 0;
    std::memcpy(&footer, whole.constData() + whole.size() - 8, sizeof(footer));
    for (qsizetype at = 4; at < whole.size() - 8 - static_cast<qsizetype>(footer); ++at) {
        QByteArray damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x04);
        const Rows rows = rowsOf(write(damaged));
        if (rows.status.ok())
            QVERIFY2(rows.json == wanted.json, std::to_string(at).c_str());
        else
            QVERIFY(says(rows.status.message(), "d.parquet: row "));
    }
}

void TstParquetRows::damageEndsInAnAnswer_data()
{
    rowsAreThoseThatWereWritten_data();
}

// Each byte as 0, all ones and another bit: rows or words, and under sanitizers no fault.
void TstParquetRows::damageEndsInAnAnswer()
{
    QFETCH(QString, path);
    const QByteArray whole = contentsOf(path);
    const qsizetype step = whole.size() / 100 + 1;
    for (qsizetype at = 0; at < whole.size(); at += step)
        for (const int bits : {0x00, 0xFF, 0x10}) {
            QByteArray damaged = whole;
            damaged[at] = static_cast<char>(bits == 0x10 ? damaged[at] ^ bits : bits);
            std::int64_t rows = 0;
            const Status status =
                readParquetRows(write(damaged).toStdString(), [&](const ParquetRow&) {
                    return ++rows < 1000 ? Status() : Status::error(ErrorKind::Cancelled, "many");
                });
            if (!status.ok() && status.kind() != ErrorKind::Cancelled)
                QVERIFY(says(status.message(), "d.parquet: "));
        }
}

void TstParquetRows::whatIsNotReadIsNamed()
{
    const auto refusal = [](const char* name) {
        return rowsOf(goldens() + QStringLiteral("/refused/") + QLatin1String(name))
            .status.message();
    };
    QVERIFY(says(refusal("brotli.parquet"),
        "brotli.parquet: row 1: column \"prompt\": its pages are compressed with BROTLI, which is "
        "not read; write the file with zstd, snappy or gzip"));
    QVERIFY(says(refusal("int96.parquet"), "column \"at\" is INT96, which is not read; write"));
    QVERIFY(says(refusal("decimal.parquet"), "column \"price\" is DECIMAL, which is not read"));
    QVERIFY(says(
        rowsOf(write(QByteArray("PAR1xxxxxxxx\4\0\0\0PARE", 20))).status.message(), "encrypted"));
    const QByteArray longFooter("PAR1\0\0\0\0\xFF\0\0\0PAR1", 16);
    QVERIFY(says(rowsOf(write(longFooter)).status.message(), "its footer claims 255 bytes"));
}

void TstParquetRows::bytesThatAreNoTextNameTheirColumn()
{
    const Rows rows = rowsOf(goldens() + QStringLiteral("/refused/bytes.parquet"));
    QVERIFY2(rows.status.ok(), rows.status.message().c_str());
    QCOMPARE(rows.json.at(0), std::string("{\"prompt\":\"a\",\"picture\":\"text\"}"));
    QCOMPARE(rows.notText, std::string("picture"));
}

void TstParquetRows::aStatusOfTheSinkEndsTheReading()
{
    int rows = 0;
    const Status status = readParquetRows(
        (goldens() + QStringLiteral("/plain.parquet")).toStdString(), [&](const ParquetRow&) {
            return ++rows == 9 ? Status::error(ErrorKind::Cancelled, "enough") : Status();
        });
    QCOMPARE(status.message(), std::string("enough"));
    QCOMPARE(rows, 9);
}

MR_TEST(TstParquetRows)

} // namespace mr::test::tst_parquet_rows

#include "tst_parquet_rows.moc"
