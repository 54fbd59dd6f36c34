// Dataset files of every format, and everything that can be wrong with one.

#include "core/data/data_files.h"
#include "core/data/record_reader.h"
#include "support/test_room.h"

#include <algorithm>
#include <filesystem>

namespace mr::test::tst_record_reader {

namespace {

struct Reading {
    Status status;
    std::vector<Record> records;
    std::string message() const { return status.ok() ? "it was accepted" : status.message(); }
};

Reading read(const std::string& path, const RecordOptions& options = {})
{
    Reading out;
    out.status = readRecords(path, options, [&](const Record& record) {
        out.records.push_back(record);
        return Status();
    });
    return out;
}

std::string value(const Record& record, std::string_view name)
{
    const Cell* cell = record.find(name);
    return cell != nullptr ? cell->text : "(absent)";
}

} // namespace

class TstRecordReader : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void jsonLinesGiveRowsWithTheirLines();
    void jsonListsGiveRowsWithTheirLines();
    void kindsOfCellsAreTold();
    void brokenJsonLinesNameTheirLine();
    void brokenJsonListsNameTheirLine();
    void jsonVerdictsAgreeWithTheTestSuite();
    void csvFollowsTheStandard();
    void csvWithoutAHeaderNumbersItsColumns();
    void csvDelimitersAreFound();
    void brokenCsvNamesItsLine();
    void formatsAreFoundByContent();
    void unreadableFilesSayWhatTheyAre();
    void invalidUtf8NamesItsLine();
    void textIsOneDocumentOrSplitOrLines();
    void rowsAcrossBufferBordersAreWhole();
    void aStatusOfTheSinkEndsTheReading();
    void sharedDatasetsAreRead();

private:
    Folder m_folder;
};

void TstRecordReader::jsonLinesGiveRowsWithTheirLines()
{
    const std::string path =
        m_folder.write("a.jsonl", "\xEF\xBB\xBF{\"q\":\"one\",\"a\":\"1\"}\r\n\n  "
                                  "\n{\"q\":\"t\\u0077o\\n\",\"a\":\"\xE4\xBA\x8C\"}");

    const Reading reading = read(path);

    QVERIFY2(reading.status.ok(), reading.message().c_str());
    QCOMPARE(reading.records.size(), 2U);
    QCOMPARE(value(reading.records[1], "q"), std::string("two\n"));
    QCOMPARE(value(reading.records[1], "a"), std::string("\xE4\xBA\x8C"));
    QCOMPARE(reading.records[1].row, 2);
    QCOMPARE(reading.records[1].line, 4);
}

void TstRecordReader::jsonListsGiveRowsWithTheirLines()
{
    const std::string path =
        m_folder.write("a.json", "\n[ {\"q\": \"a ] } , \\\" \\\\\", \"a\": 1},\n  {\"q\": "
                                 "\"[{\",\n \"x\": {\"y\": []}} ]\n ");

    const Reading reading = read(path);

    QVERIFY2(reading.status.ok(), reading.message().c_str());
    QCOMPARE(reading.records.size(), 2U);
    QCOMPARE(value(reading.records[0], "q"), std::string("a ] } , \" \\"));
    QCOMPARE(value(reading.records[1], "q"), std::string("[{"));
    QCOMPARE(reading.records[0].line, 2);
    QCOMPARE(reading.records[1].line, 3);
    QVERIFY(read(m_folder.write("none.json", " [ ] ")).status.ok());
}

void TstRecordReader::kindsOfCellsAreTold()
{
    const Reading reading = read(m_folder.write(
        "k.jsonl", R"({"t":"x","n":-1.5,"b":true,"z":null,"l":[1],"o":{},"t":"again"})"));

    QVERIFY2(reading.status.ok(), reading.message().c_str());
    const Record& record = reading.records.at(0);
    QCOMPARE(record.cells.size(), 6U);
    QCOMPARE(value(record, "t"), std::string("again"));
    QVERIFY(record.find("t")->kind == CellKind::Text);
    QVERIFY(record.find("n")->kind == CellKind::Number && value(record, "n") == "-1.5");
    QVERIFY(record.find("b")->kind == CellKind::Number && value(record, "b") == "true");
    QVERIFY(record.find("z")->kind == CellKind::Null);
    QVERIFY(record.find("l")->kind == CellKind::Nested);
    QVERIFY(record.find("o")->kind == CellKind::Nested);
}

void TstRecordReader::brokenJsonLinesNameTheirLine()
{
    const std::string good = "{\"q\":\"x\"}\n";
    const auto with = [&](const std::string& line) {
        return read(m_folder.write("b.jsonl", good + "\n" + good + line + "\n" + good)).message();
    };
    QVERIFY(contains(with("{\"q\":\"x\""), "b.jsonl, line 4: not valid JSON"));
    QVERIFY(contains(with("{\"q\":\"x\"} {"), "line 4: not valid JSON"));
    QVERIFY(contains(with("{'q':'x'}"), "line 4: not valid JSON"));
    QVERIFY(contains(with("{\"q\":\"\x01\"}"), "line 4: not valid JSON"));
    QVERIFY(contains(with(std::string("{\"q\":\0}", 7)), "binary"));
    QVERIFY(contains(with("[\"x\"]"), "line 4: row 3 is not an object"));
    QVERIFY(contains(with("{\"q\":\"\xC3\x28\"}"), "line 4: not valid UTF-8"));
    const std::string deep = "{\"q\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
    QVERIFY(contains(with(deep), "line 4: not valid JSON (row 3): nested too deeply"));
    std::string wide = "{";
    for (int i = 0; i < 5000; ++i)
        wide += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
    QVERIFY(contains(with(wide + "}"), "line 4: more than 4096 columns"));
}

void TstRecordReader::brokenJsonListsNameTheirLine()
{
    const auto with = [&](const std::string& text) {
        return read(m_folder.write("b.json", text)).message();
    };
    QVERIFY(
        contains(with("[{\"q\":1},\n{\"q\":2}"), "line 2: not valid JSON: the list is not closed"));
    QVERIFY(contains(with("[{\"q\":1},\n{\"q\" 2}]"), "line 2: not valid JSON (row 2)"));
    QVERIFY(contains(with("[{\"q\":1},\n]"), "line 2: not valid JSON: a row is missing"));
    QVERIFY(contains(with("[{\"q\":1}]\n]"), "line 2: not valid JSON: text after the end"));
    QVERIFY(contains(with("[{\"q\":1},\n\"x\"]"), "line 2: row 2 is not an object"));
    QVERIFY(contains(with("[{\"q\":1}}]"), "not valid JSON"));
    QVERIFY(contains(with("[{\"q\":\"\n\n\xFF\"}]"), "line 3: not valid UTF-8"));
    QVERIFY(contains(with("17"), "not a JSON list of rows"));
    QVERIFY(contains(with(std::string(3000, '[')), "line 1"));
}

void TstRecordReader::jsonVerdictsAgreeWithTheTestSuite()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    int accepted = 0;
    int refused = 0;
    RecordOptions options;
    options.format = DataFormat::Json;
    for (const auto& entry :
        std::filesystem::directory_iterator(data + "/malformed/JSONTestSuite/test_parsing")) {
        const std::string name = entry.path().filename().string();
        const std::string text = readFile(entry.path().string());
        // As a file of its own, and as the value of a column, where lone values are allowed too.
        const Reading alone = read(entry.path().string(), options);
        const Reading inside =
            read(m_folder.write("suite.json", "[{\"a\": " + text + "}]"), options);
        if (name.starts_with("y_"))
            QVERIFY2(inside.status.ok(), (name + ": " + inside.message()).c_str());
        if (name.starts_with("n_"))
            QVERIFY2(!alone.status.ok() && !inside.status.ok(), name.c_str());
        accepted += name.starts_with("y_") ? 1 : 0;
        refused += name.starts_with("n_") ? 1 : 0;
    }
    QVERIFY(accepted > 90 && refused > 180);
}

void TstRecordReader::csvFollowsTheStandard()
{
    const Reading reading = read(m_folder.write("a.csv",
        "\xEF\xBB\xBFq,\"a \"\"x\"\"\",note\r\n"
        "\"one, two\",\"line\r\nfeed\",\r\n\r\n5\" disk,,\"\"\r\nlast,\"\"\"\"\"\",z"));

    QVERIFY2(reading.status.ok(), reading.message().c_str());
    QCOMPARE(reading.records.size(), 3U);
    QCOMPARE(reading.records[0].cells[1].name, std::string("a \"x\""));
    QCOMPARE(value(reading.records[0], "q"), std::string("one, two"));
    QCOMPARE(reading.records[0].cells[1].text, std::string("line\r\nfeed"));
    QCOMPARE(value(reading.records[0], "note"), std::string());
    QCOMPARE(value(reading.records[1], "q"), std::string("5\" disk"));
    QCOMPARE(reading.records[2].cells[1].text, std::string("\"\""));
    QCOMPARE(reading.records[1].line, 5);
    QCOMPARE(reading.records[2].row, 3);
}

void TstRecordReader::csvWithoutAHeaderNumbersItsColumns()
{
    Reading reading = read(m_folder.write("n.csv", "What is two and two?,4\nAnd three?,5\n"));
    QCOMPARE(reading.records.size(), 2U);
    QCOMPARE(value(reading.records[0], "column1"), std::string("What is two and two?"));

    RecordOptions options;
    options.wanted = {"Was ist das?"};
    reading = read(m_folder.write("h.csv", "Was ist das?,4\nx,5\n"), options);
    QCOMPARE(reading.records.size(), 1U);
    QCOMPARE(value(reading.records[0], "4"), std::string("5"));
}

void TstRecordReader::csvDelimitersAreFound()
{
    for (const char* text : {"q;a\nx,y;z\n", "q\ta\nx,y\tz\n", "q,a\n\"x,y\",z\n"}) {
        const Reading reading = read(m_folder.write("d.csv", text));
        QVERIFY2(reading.status.ok(), reading.message().c_str());
        QCOMPARE(value(reading.records.at(0), "q"), std::string("x,y"));
        QCOMPARE(value(reading.records.at(0), "a"), std::string("z"));
    }
}

void TstRecordReader::brokenCsvNamesItsLine()
{
    const auto with = [&](const std::string& text) {
        return read(m_folder.write("b.csv", "q,a\n" + text)).message();
    };
    QVERIFY(contains(with("1,2\n1,2,3\n"), "b.csv, line 3: has 3 cells where the first row has 2"));
    QVERIFY(contains(with("1,2\n1\n"), "line 3: has 1 cells"));
    QVERIFY(contains(with("1,\"2\n3\n"), "line 2: the quote that begins here is never closed"));
    QVERIFY(contains(with("\"1\"x,2\n"), "line 2: text after a closing quote"));
    QVERIFY(contains(with("1,\xFF\n"), "line 2: not valid UTF-8"));
    QVERIFY(contains(with(std::string(5000, ',')), "line 2: more than 4096 columns"));
}

void TstRecordReader::formatsAreFoundByContent()
{
    const auto found = [&](const char* name, const char* text) {
        return findFormat(m_folder.write(name, text), DataFormat::Auto).value();
    };
    QCOMPARE(found("x", "{\"a\": 1}\n{\"a\": 2}\n"), DataFormat::Jsonl);
    QCOMPARE(found("x.json", "{\"a\": 1}\n{\"a\": 2}\n"), DataFormat::Jsonl);
    QCOMPARE(found("x.data", " [\n {\"a\": 1}]"), DataFormat::Json);
    QCOMPARE(found("x.json", "{\n\"a\": 1}"), DataFormat::Json);
    QCOMPARE(found("x.JSONL", "broken"), DataFormat::Jsonl);
    QCOMPARE(found("x.csv", "a,b"), DataFormat::Csv);
    QCOMPARE(found("x.tsv", "a\tb"), DataFormat::Csv);
    QCOMPARE(found("x.txt", "{\"a\": 1}"), DataFormat::Json);
    QCOMPARE(found("x", "Once upon a time"), DataFormat::Text);
    QCOMPARE(found("x", "[citation needed]"), DataFormat::Text);
}

void TstRecordReader::unreadableFilesSayWhatTheyAre()
{
    const auto with = [&](std::string_view content) {
        return read(m_folder.write("u.jsonl", content)).message();
    };
    QVERIFY(contains(with(""), "is empty"));
    QVERIFY(contains(with(std::string_view("ab\0cd", 5)), "binary file"));
    QVERIFY(contains(with("\x1F\x8B\x08"), "gzip data ends early"));
    QVERIFY(contains(with("PK\x03\x04zz"), "zip"));
    QVERIFY(contains(with("PAR1"), "is a Parquet file that is cut off"));
    QVERIFY(contains(with(std::string_view("\xFF\xFEh\0", 4)), "UTF-16"));
    QVERIFY(contains(with("version https://git-lfs.github.com/spec/v1"), "git lfs pull"));
    QVERIFY(contains(read(m_folder.path()).message(), "is a folder"));
    QVERIFY(contains(read(m_folder.path("absent.txt")).message(), "absent.txt"));
}

void TstRecordReader::invalidUtf8NamesItsLine()
{
    const std::string bad = "one\ntwo \xE7\xB2\x89\nthr\xE9"
                            "e\n";
    QVERIFY(
        contains(read(m_folder.write("l.txt", bad)).message(), "l.txt, line 3: not valid UTF-8"));
    RecordOptions options;
    options.perLine = true;
    QVERIFY(contains(read(m_folder.path("l.txt"), options).message(), "line 3: not valid UTF-8"));
    QCOMPARE(firstBadUtf8("ab\xE7\xB2"), 2U);
    QCOMPARE(firstBadUtf8("\xE7\xB2\x89\x80"), 3U);
    QCOMPARE(firstBadUtf8("ok"), std::string_view::npos);
}

void TstRecordReader::textIsOneDocumentOrSplitOrLines()
{
    const std::string text = "\n one\r\n<|end|>\n\ntwo<|end|> \n<|end|>three\n";
    const std::string path = m_folder.write("t.txt", text);
    RecordOptions split;
    split.split = "<|end|>";
    RecordOptions lines;
    lines.perLine = true;

    QCOMPARE(read(path).records.at(0).cells[0].text, text);
    const Reading parts = read(path, split);
    QCOMPARE(parts.records.size(), 3U);
    QCOMPARE(parts.records[0].cells[0].text, std::string("one"));
    QCOMPARE(parts.records[1].cells[0].text, std::string("two"));
    QCOMPARE(parts.records[1].line, 5);
    QCOMPARE(parts.records[2].cells[0].text, std::string("three"));
    const Reading each = read(path, lines);
    QCOMPARE(each.records.size(), 4U);
    QCOMPARE(each.records[0].cells[0].text, std::string(" one"));
    QCOMPARE(each.records[2].line, 5);
}

void TstRecordReader::rowsAcrossBufferBordersAreWhole()
{
    std::string jsonl;
    std::string json = "[";
    std::string csv = "q,a\n";
    for (int i = 0; i < 30; ++i) { // 3 MB: three buffers
        const std::string body(
            100000 + static_cast<std::size_t>(i), static_cast<char>('a' + i % 26));
        jsonl += "{\"q\":\"" + body + "\"}\r\n";
        json += (i == 0 ? "" : ",\n") + ("{\"q\":\"" + body + "\"}");
        csv += "\"" + body + "\",x\r\n";
    }
    for (const std::string& path : {m_folder.write("big.jsonl", jsonl),
             m_folder.write("big.json", json + "]"), m_folder.write("big.csv", csv)}) {
        const Reading reading = read(path);
        QVERIFY2(reading.status.ok(), reading.message().c_str());
        QCOMPARE(reading.records.size(), 30U);
        for (std::size_t i = 0; i < 30; ++i)
            QCOMPARE(value(reading.records[i], "q"),
                std::string(100000 + i, static_cast<char>('a' + i % 26)));
    }
}

void TstRecordReader::aStatusOfTheSinkEndsTheReading()
{
    for (const auto& [name, text] : {std::pair("s.jsonl", "{\"q\":1}\n{\"q\":2}\nbroken"),
             {"s.json", "[{\"q\":1},{\"q\":2},broken"}, {"s.csv", "q,a\n1,2\n3,4\n1"}}) {
        int rows = 0;
        const Status status = readRecords(m_folder.write(name, text), {}, [&](const Record&) {
            return ++rows == 2 ? Status::error(ErrorKind::Cancelled, "enough") : Status();
        });
        QCOMPARE(status.message(), std::string("enough"));
    }
}

void TstRecordReader::sharedDatasetsAreRead()
{
    const std::string data = sharedData();
    if (data.empty())
        return;
    const std::pair<const char*, std::size_t> expected[] = {{"gsm8k/train.jsonl", 7473},
        {"gsm8k/test.jsonl", 1319}, {"instruction-data.json", 1100},
        {"japanese/jcommonsenseqa_valid.json", 1119}};
    for (const auto& [file, rows] : expected)
        QCOMPARE(read(data + "/datasets/" + file).records.size(), rows);
    const Reading csv = read(data + "/datasets/japanese/jmmlu_high_school_mathematics.csv");
    QVERIFY2(csv.status.ok(), csv.message().c_str());
    QCOMPARE(csv.records.at(0).cells.size(), 6U);
    QCOMPARE(value(csv.records[0], "column6"), std::string("C"));
    QVERIFY(
        value(csv.records[1], "column1").find("\"\xE5\xBC\xB7\xE5\x8A\x9B") != std::string::npos);
    for (const char* file : {"alpaca_en_demo.json", "glaive_toolcall_en_demo.json",
             "dpo_en_demo.json", "sharegpt_dummy_conversation.json", "v1_sft_demo.jsonl"})
        QVERIFY2(read(data + "/datasets/" + file).records.size() > 100, file);
}

MR_TEST(TstRecordReader)

} // namespace mr::test::tst_record_reader

#include "tst_record_reader.moc"
