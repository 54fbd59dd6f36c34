// Datasets in gzip and zstd: the same records as the file within, and damage that is told.

#include "core/data/compressed_case.h"
#include "core/data/data_files.h"
#include "core/data/record_reader.h"
#include "support/test_room.h"

#include <algorithm>
#include <vector>

namespace mr::test::tst_compressed_files {

namespace {

using Pack = std::string (*)(std::string_view);
constexpr Pack kPacks[] = {gzip, zstd};

// Rows as "name=text|name=text", a line each, and the refusal if there is one.
std::string rowsOf(const std::string& path, const RecordOptions& options = {})
{
    std::string out;
    const Status status = readRecords(path, options, [&](const Record& record) {
        out += std::to_string(record.line) + ": ";
        for (const Cell& cell : record.cells)
            out += (&cell == record.cells.data() ? "" : "|") + cell.name + "=" + cell.text;
        out += "\n";
        return Status();
    });
    return status.ok() ? out : out + "! " + status.message();
}

std::string someLines(int count)
{
    std::string out;
    for (int i = 0; i < count; ++i)
        out += "{\"q\": \"question " + std::to_string(i * 7919) + "\", \"a\": \"" +
               std::string(static_cast<std::size_t>(i % 50), 'x') + "\"}\n";
    return out;
}

} // namespace

class TstCompressedFiles : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyTextFormatIsReadAsItsContents_data();
    void everyTextFormatIsReadAsItsContents();
    void membersAndFramesAreOneText();
    void aFileThatIsCutOffIsNoShorterDataset();
    void damageIsAnError();
    void otherBytesBehindTheEndAreAnError();
    void theInnerNameDecidesWhereContentIsNoEvidence();
    void otherArchivesAreRefusedByName();
    void aWindowAboveTheLimitIsRefused();
    void theReadingSaysSo();

private:
    Folder m_folder;
};

void TstCompressedFiles::everyTextFormatIsReadAsItsContents_data()
{
    QTest::addColumn<QByteArray>("name");
    QTest::addColumn<QByteArray>("text");
    const QByteArray lines = QByteArray::fromStdString(someLines(40'000)); // 3 MB: four buffers
    QTest::newRow("JSON lines") << QByteArray("r.jsonl") << lines;
    QTest::newRow("JSON") << QByteArray("r.json")
                          << "[" + QByteArray(lines).replace("}\n{", "},\n{") + "]";
    QTest::newRow("object with a list")
        << QByteArray("o.json") << QByteArray("{\"v\": 1,\n \"data\": [{\"q\": \"a\"}]}");
    QTest::newRow("CSV") << QByteArray("r.csv") << QByteArray("q;a\n1;\"x\ny\"\n2;z\n");
    QTest::newRow("text") << QByteArray("r.txt")
                          << QByteArray("\xEF\xBB\xBFOnce upon a time\nthere was\n");
    QTest::newRow("a broken row") << QByteArray("r.jsonl") << QByteArray("{\"q\":1}\n{\"q\":\n");
}

void TstCompressedFiles::everyTextFormatIsReadAsItsContents()
{
    QFETCH(QByteArray, name);
    QFETCH(QByteArray, text);
    const std::string plain = rowsOf(m_folder.write(name.toStdString(), text.toStdString()));
    QVERIFY(!plain.empty());
    for (const Pack pack : kPacks) {
        // The name of the plain file, so that messages are alike, too.
        const std::string packed = pack(text.toStdString());
        QCOMPARE(rowsOf(m_folder.write(name.toStdString(), packed)), plain);
    }
}

void TstCompressedFiles::membersAndFramesAreOneText()
{
    const std::string text = someLines(300);
    const std::string plain = rowsOf(m_folder.write("m", text));
    for (const Pack pack : kPacks) {
        std::string packed = pack("");
        for (std::size_t at = 0; at < text.size(); at += 1000) // within lines
            packed += pack(std::string_view(text).substr(at, 1000));
        QCOMPARE(rowsOf(m_folder.write("m", packed + pack(""))), plain);
    }
    const std::string skippable("\x53\x2A\x4D\x18\x03\0\0\0abc", 11);
    QCOMPARE(rowsOf(m_folder.write("m", skippable + zstd(text) + skippable)), plain);
}

void TstCompressedFiles::aFileThatIsCutOffIsNoShorterDataset()
{
    for (const Pack pack : kPacks) {
        const std::string packed = pack(someLines(20));
        for (std::size_t bytes = 4; bytes < packed.size(); ++bytes) {
            const std::string rows = rowsOf(m_folder.write("cut.jsonl", packed.substr(0, bytes)));
            QVERIFY2(rows.find("cut.jsonl") != std::string::npos &&
                         rows.find("cut off; download or copy it again") != std::string::npos,
                rows.c_str());
        }
    }
}

void TstCompressedFiles::damageIsAnError()
{
    const std::string text = someLines(20);
    const std::string plain = rowsOf(m_folder.write("d.jsonl", text));
    for (const Pack pack : kPacks) {
        const std::string packed = pack(text);
        for (std::size_t at = 10; at < packed.size(); ++at) {
            std::string damaged = packed;
            damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
            const std::string rows = rowsOf(m_folder.write("d.jsonl", damaged));
            QVERIFY2(rows.find("! ") != std::string::npos, std::to_string(at).c_str());
            QVERIFY2(rows.find("d.jsonl") != std::string::npos, rows.c_str());
        }
    }
    std::string crc = gzip(text);
    crc[crc.size() - 8] = static_cast<char>(crc[crc.size() - 8] ^ 1);
    QVERIFY(contains(rowsOf(m_folder.write("d.jsonl", crc)),
        "bytes of its contents: the gzip data is damaged (incorrect data check); download"));
}

void TstCompressedFiles::otherBytesBehindTheEndAreAnError()
{
    for (const Pack pack : kPacks)
        for (const std::string_view tail : {std::string_view("other"), std::string_view("\0\0", 2),
                 std::string_view("{\"q\": 1}\n{\"q\": 2}\n")}) {
            const std::string path = m_folder.write("t", pack(someLines(3)) + std::string(tail));
            QVERIFY(contains(rowsOf(path), tail.size() > 4 ? "other bytes follow the end" : "! "));
        }
}

void TstCompressedFiles::theInnerNameDecidesWhereContentIsNoEvidence()
{
    const auto found = [&](const char* name, std::string_view content) {
        return findFormat(m_folder.write(name, content), DataFormat::Auto).value();
    };
    for (const Pack pack : kPacks) {
        QCOMPARE(found("x.csv.gz", pack("a,b")), DataFormat::Csv);
        QCOMPARE(found("x.TSV.ZST", pack("a\tb")), DataFormat::Csv);
        QCOMPARE(found("x.jsonl.zst", pack("broken")), DataFormat::Jsonl);
        QCOMPARE(found("x.gz", pack("{\"a\": 1}\n{\"a\": 2}\n")), DataFormat::Jsonl);
        QCOMPARE(found("x", pack("Once upon a time")), DataFormat::Text);
    }
    QCOMPARE(found("x.csv.gz", "a,b"), DataFormat::Csv); // unpacked, and called so still
}

void TstCompressedFiles::otherArchivesAreRefusedByName()
{
    const auto with = [&](std::string_view content) {
        return rowsOf(m_folder.write("o.jsonl", content));
    };
    QVERIFY(contains(with("\xFD"
                          "7zXZ"),
        "xz, which is not read; unpack it, or pack it with gzip or zstd"));
    QVERIFY(contains(with("BZh91AY&SYzz"), "bzip2"));
    QVERIFY(contains(with("\x04\x22\x4D\x18zz"), "lz4"));
    QVERIFY(contains(with("PK\x03\x04zz"), "zip"));
    QVERIFY(contains(with("7z\xBC\xAF\x27\x1C"), "7z"));
    QVERIFY(contains(with(gzip(gzip("a"))), "compressed twice"));
    QVERIFY(contains(with(gzip(std::string(257, 'a') + "ustar")), "tar archive"));
    QVERIFY(contains(with(gzip("")), "is empty"));
    QVERIFY(contains(rowsOf(m_folder.write("BZh", "BZh")), "text=BZh"));
    QVERIFY(contains(rowsOf(m_folder.write("BZh", "BZh9 is how bzip2 begins")), "text=BZh9"));
}

// A frame by hand: 18 in the exponent of the window are 256 MiB.
void TstCompressedFiles::aWindowAboveTheLimitIsRefused()
{
    const auto frame = [](char window) {
        return std::string("\x28\xB5\x2F\xFD\0", 5) + window + std::string("\x11\0\0ab", 5);
    };
    QCOMPARE(rowsOf(m_folder.write("w", frame('\x88'))), std::string("1: text=ab\n"));
    QVERIFY(contains(rowsOf(m_folder.write("w", frame('\x90'))),
        "needs a window of more than 128 MiB (zstd --long); unpack it, or pack it again"));
}

void TstCompressedFiles::theReadingSaysSo()
{
    const auto reading = [&](const std::string& content) {
        return describeReading(m_folder.write("s.csv", content), {});
    };
    const std::string text = "name,age\nann,3\nbob,4\n";
    QCOMPARE(reading(text), std::string("CSV with commas, the first row is a header"));
    QCOMPARE(reading(zstd(text)),
        std::string("CSV with commas, the first row is a header, compressed with zstd"));
}

MR_TEST(TstCompressedFiles)

} // namespace mr::test::tst_compressed_files

#include "tst_compressed_files.moc"
