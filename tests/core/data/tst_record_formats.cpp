// Record files as programs write them: how the content decides the format, and the messages.

#include "core/data/data_files.h"
#include "core/data/record_reader.h"
#include "support/test_room.h"

namespace mr::test::tst_record_formats {

namespace {

// Rows as "name=text|name=text", a line each, or the refusal.
std::string rowsOf(const std::string& path, const RecordOptions& options = {})
{
    std::string out;
    const Status status = readRecords(path, options, [&](const Record& record) {
        for (const Cell& cell : record.cells)
            out += (&cell == record.cells.data() ? "" : "|") + cell.name + "=" + cell.text;
        out += "\n";
        return Status();
    });
    return status.ok() ? out : status.message();
}

} // namespace

class TstRecordFormats : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void contentDecidesWhateverTheFileIsCalled_data();
    void contentDecidesWhateverTheFileIsCalled();
    void proseStaysText_data();
    void proseStaysText();
    void whatMayBeATableIsAsked();
    void yamlIsRefusedByName();
    void csvOfManyProgramsIsRead_data();
    void csvOfManyProgramsIsRead();
    void headersAreToldByWhatIsBelowThem();
    void csvThatLeavesAColumnOpenIsRefused();
    void jsonOfManyFormsIsRead_data();
    void jsonOfManyFormsIsRead();
    void jsonWithoutOneListOfRowsIsRefused();
    void bytesOfValueZeroNameTheirLine();
    void theReadingIsTold();

private:
    Folder m_folder;
};

void TstRecordFormats::contentDecidesWhateverTheFileIsCalled_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("rows");
    const QByteArray two("q=a b|r=c\nq=d e|r=f\n");
    QTest::newRow("JSON lines") << QByteArray("{\"q\":\"a b\",\"r\":\"c\"}\n\n"
                                              "{\"q\":\"d e\",\"r\":\"f\"}\n")
                                << two;
    QTest::newRow("JSON lines that end in a carriage return")
        << QByteArray("{\"q\":\"a b\",\"r\":\"c\"}\r{\"q\":\"d e\",\"r\":\"f\"}\r") << two;
    QTest::newRow("a list") << QByteArray("[{\"q\":\"a b\",\"r\":\"c\"},\n"
                                          "{\"q\":\"d e\",\"r\":\"f\"}]")
                            << two;
    QTest::newRow("an object with a list")
        << QByteArray("{\"data\":[{\"q\":\"a b\",\"r\":\"c\"},{\"q\":\"d e\",\"r\":\"f\"}]}")
        << two;
    QTest::newRow("commas") << QByteArray("q,r\na b,c\nd e,f\n") << two;
    QTest::newRow("semicolons") << QByteArray("q;r\na b;c\nd e;f\n") << two;
    QTest::newRow("tabs") << QByteArray("q\tr\na b\tc\nd e\tf\n") << two;
    QTest::newRow("vertical bars") << QByteArray("q|r\na b|c\nd e|f\n") << two;
}

void TstRecordFormats::contentDecidesWhateverTheFileIsCalled()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, rows);

    for (const char* name : {"rows.txt", "rows", "rows.dat", "rows.md"})
        QCOMPARE(rowsOf(m_folder.write(name, text.toStdString())), rows.toStdString());
}

void TstRecordFormats::proseStaysText_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::newRow("commas") << QByteArray("Hello, world\nand you, too\nor he, perhaps\n");
    QTest::newRow("some commas") << QByteArray(
        "Once, there was\na mill\nby a river, said he, so\n");
    QTest::newRow("a citation") << QByteArray("[citation needed] is what they say\n[1] or this\n");
    QTest::newRow("a wiki link") << QByteArray("[[Mill]] turns, [[wheel]] too\n");
    QTest::newRow("a placeholder") << QByteArray("{name} lives here\n{age} years\n");
    QTest::newRow("a template") << QByteArray("{{ title }}\n{% if x %}\n");
    QTest::newRow("a table of Markdown") << QByteArray("| a | b |\n|---|---|\n| 1 | 2 |\n");
    QTest::newRow("a list of Markdown") << QByteArray("- one: first\n- two: second\nand so on\n");
    QTest::newRow("ChatML") << QByteArray("<|im_start|>user\na<|im_end|>\n").repeated(8);
    QTest::newRow("code") << QByteArray("int main()\n{\n  f(a, b);\n}\n");
    QTest::newRow("one line") << QByteArray("a,b");
}

void TstRecordFormats::proseStaysText()
{
    QFETCH(QByteArray, text);

    for (const char* name : {"prose.txt", "prose"}) {
        const std::string path = m_folder.write(name, text.toStdString());
        Result<DataFormat> format = findFormat(path, DataFormat::Auto);
        QVERIFY2(format.ok(), format.status().message().c_str());
        QCOMPARE(format.value(), DataFormat::Text);
    }
}

void TstRecordFormats::whatMayBeATableIsAsked()
{
    const auto asked = [&](const char* text) {
        const std::string said = rowsOf(m_folder.write("t.txt", text));
        return contains(said, "--format csv") && contains(said, "--format text");
    };
    QVERIFY(asked("prompt|response\na|c\n"));
    QVERIFY(asked("apple,pear\nplum,fig\n"));
    QVERIFY(asked("a\t1\nb\t2\nc\t3\nd\t4\ne\t5\nf\t6\ng\t7\nh\t8\ni\t9\nj\t0\nk\t1\n"));
    RecordOptions csv;
    csv.format = DataFormat::Csv;
    RecordOptions text;
    text.format = DataFormat::Text;
    const std::string path = m_folder.write("t.txt", "prompt|response\na|c\n");
    QCOMPARE(rowsOf(path, csv), std::string("prompt=a|response=c\n"));
    QCOMPARE(rowsOf(path, text), std::string("text=prompt|response\na|c\n\n"));
    QVERIFY(contains(
        rowsOf(m_folder.write("j.txt", "{\"q\": \"a\"}\n{\"q\": \"b\"\n")), "--format text"));
    QVERIFY(contains(rowsOf(m_folder.write("p.txt", "{'q': 'a'}\n")), "--format text"));
}

void TstRecordFormats::yamlIsRefusedByName()
{
    const char* const yaml =
        "# rows\n---\n- prompt: q\n  response: a\n- prompt: r\n  response: b\n";
    for (const char* name : {"x.yaml", "x.yml", "x.txt", "x"})
        QVERIFY(contains(rowsOf(m_folder.write(name, yaml)), "is YAML"));
    QVERIFY(contains(rowsOf(m_folder.write("y.yml", "prompt: q\n")), "JSON lines"));
}

void TstRecordFormats::csvOfManyProgramsIsRead_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("rows");
    QTest::newRow("pandas") << QByteArray(",text\n0,hello world\n1,bye world\n")
                            << QByteArray("index=0|text=hello world\nindex=1|text=bye world\n");
    QTest::newRow("pandas, an index beside it")
        << QByteArray(",index,text\n0,5,hello\n1,6,bye\n")
        << QByteArray("index2=0|index=5|text=hello\nindex2=1|index=6|text=bye\n");
    QTest::newRow("pandas, questions")
        << QByteArray(",question,answer\n0,What is it?,A cat\n1,Who?,A dog\n")
        << QByteArray("index=0|question=What is it?|answer=A cat\n"
                      "index=1|question=Who?|answer=A dog\n");
    QTest::newRow("R, write.csv") << QByteArray("\"\",\"q\",\"a\"\n\"1\",\"x\",\"y\"\n")
                                  << QByteArray("index=1|q=x|a=y\n");
    QTest::newRow("R, write.table")
        << QByteArray("\"q\",\"a\"\n\"1\",\"x\",\"y\"\n\"2\",\"z\",\"\"\n")
        << QByteArray("index=1|q=x|a=y\nindex=2|q=z|a=\n");
    QTest::newRow("a separator at the end") << QByteArray("prompt,response,\nq,a,\nr,b,\n")
                                            << QByteArray("prompt=q|response=a\n"
                                                          "prompt=r|response=b\n");
    QTest::newRow("a separator at the end of rows only")
        << QByteArray("prompt,response\nq,a,\nr,b,\n")
        << QByteArray("prompt=q|response=a\nprompt=r|response=b\n");
    QTest::newRow("Excel") << QByteArray("\xEF\xBB\xBFsep=;\r\nq;a\r\n\"x,y\";z\r\n")
                           << QByteArray("q=x,y|a=z\n");
    QTest::newRow("Excel, one column") << QByteArray("sep=,\nq\nx\n") << QByteArray("q=x\n");
    QTest::newRow("carriage returns")
        << QByteArray("q,a\rx,y\r\"z\r\",w\r") << QByteArray("q=x|a=y\nq=z\r|a=w\n");
    QTest::newRow("decimal commas")
        << QByteArray("q;a\n1,5;2,5\n3,5;4,5\n") << QByteArray("q=1,5|a=2,5\nq=3,5|a=4,5\n");
    QTest::newRow("vertical bars")
        << QByteArray("prompt|response\na, b|c\n") << QByteArray("prompt=a, b|response=c\n");
}

void TstRecordFormats::csvOfManyProgramsIsRead()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, rows);

    QCOMPARE(rowsOf(m_folder.write("rows.csv", text.toStdString())), rows.toStdString());
}

void TstRecordFormats::headersAreToldByWhatIsBelowThem()
{
    const auto rows = [&](const char* text) { return rowsOf(m_folder.write("h.csv", text)); };
    QCOMPARE(rows("Is it spam?,text\nyes,hello\nno,bye\n"),
        std::string("Is it spam?=yes|text=hello\nIs it spam?=no|text=bye\n"));
    QCOMPARE(rows("What is it?,A cat\nWho?,A dog\n"),
        std::string("column1=What is it?|column2=A cat\ncolumn1=Who?|column2=A dog\n"));
    QCOMPARE(rows("spam,hello\nham,bye\nspam,you\n"),
        std::string("column1=spam|column2=hello\ncolumn1=ham|column2=bye\n"
                    "column1=spam|column2=you\n"));
    QCOMPARE(
        rows("q,2020\nx,2021\n"), std::string("column1=q|column2=2020\ncolumn1=x|column2=2021\n"));
}

void TstRecordFormats::csvThatLeavesAColumnOpenIsRefused()
{
    const auto said = [&](const char* text) { return rowsOf(m_folder.write("r.csv", text)); };
    QVERIFY(contains(said("q,a,q\nx,y,z\n"), "the first row has \"q\" twice"));
    std::string late = "q,a,\n";
    for (int i = 0; i < 300; ++i) // beyond the rows that are looked at to find the columns
        late += "x" + std::to_string(i) + ",y,\n";
    QVERIFY(contains(said((late + "x,y,z\n").c_str()), "line 302: has a text in the last column"));
}

void TstRecordFormats::jsonOfManyFormsIsRead_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("rows");
    QTest::newRow("an object with a list of rows")
        << QByteArray("{\"version\": \"1\", \"data\": [{\"q\": \"a\"}, {\"q\": \"b\"}], \"n\": 2}")
        << QByteArray("q=a\nq=b\n");
    QTest::newRow("under another name")
        << QByteArray("{\"n\": 2,\n\"pairs\": [\n{\"q\": \"a\"}\n]}") << QByteArray("q=a\n");
    QTest::newRow("an empty list") << QByteArray("{\"data\": []}") << QByteArray("data=[]\n");
    QTest::newRow("one row over lines")
        << QByteArray("{\n \"q\": \"a\",\n \"r\": [\"b\"]\n}\n") << QByteArray("q=a|r=[\"b\"]\n");
    QTest::newRow("one conversation")
        << QByteArray("{\n\"messages\": [\n{\"role\": \"user\", \"content\": \"q\"}]}")
        << QByteArray("messages=[{\"role\":\"user\",\"content\":\"q\"}]\n");
    QTest::newRow("one row with a list of objects")
        << QByteArray("{\n\"q\": \"a\", \"tools\": [{\"name\": \"f\"}]}")
        << QByteArray("q=a|tools=[{\"name\":\"f\"}]\n");
    QTest::newRow("texts") << QByteArray("[\"a\",\n\"b\"]") << QByteArray("text=a\ntext=b\n");
    QTest::newRow("pairs") << QByteArray("[[\"a\", \"b\"],\n[\"c\", \"d\"]]")
                           << QByteArray("column1=a|column2=b\ncolumn1=c|column2=d\n");
    QTest::newRow("pairs as lines") << QByteArray("[\"a\", \"b\"]\n[\"c\", \"d\"]\n")
                                    << QByteArray("column1=a|column2=b\ncolumn1=c|column2=d\n");
    QTest::newRow("conversations")
        << QByteArray("[[{\"role\": \"user\"}],\n[{\"role\": \"user\"}, {}]]")
        << QByteArray("messages=[{\"role\":\"user\"}]\nmessages=[{\"role\":\"user\"},{}]\n");
    QTest::newRow("an object with conversations")
        << QByteArray("{\"conversations\": [[{\"from\": \"human\"}]]}")
        << QByteArray("messages=[{\"from\":\"human\"}]\n");
}

void TstRecordFormats::jsonOfManyFormsIsRead()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, rows);

    QCOMPARE(rowsOf(m_folder.write("rows.json", text.toStdString())), rows.toStdString());
}

void TstRecordFormats::jsonWithoutOneListOfRowsIsRefused()
{
    const auto said = [&](const char* text) { return rowsOf(m_folder.write("r.json", text)); };
    QVERIFY(contains(said("{\"train\": [{\"q\": 1}], \"test\": [{\"q\": 2}]}"),
        "several lists of rows (\"train\", \"test\")"));
    QVERIFY(contains(
        said("{\"q\": [\"a\", \"b\"], \"r\": [\"c\", \"d\"]}"), "columns as lists (\"q\", \"r\")"));
    QVERIFY(contains(said("{\"data\": [{\"q\": 1}], \"n\": }"), "not valid JSON"));
    QVERIFY(contains(said("{\"data\": [{\"q\": 1}]\n"), "not valid JSON"));
    QVERIFY(contains(said("{\"q\": 1}\n}"), "text after the end of the object"));
    QVERIFY(contains(said("[\"a\",\n[\"b\"]]"), "line 2: row 2 is a list of texts where"));
    QVERIFY(contains(said("[1, 2]"), "row 1 is not an object"));
}

void TstRecordFormats::bytesOfValueZeroNameTheirLine()
{
    const std::string nul("\0", 1);
    const std::string far(70'000, 'x'); // beyond the bytes that decide the format
    QVERIFY(contains(rowsOf(m_folder.write("n.txt", far + "\nab" + nul)), "line 2: holds a byte"));
    QVERIFY(contains(rowsOf(m_folder.write("n.csv", "q,a\n" + far + ",y\nz," + nul + "\n")),
        "line 3: holds a byte"));
    QVERIFY(contains(
        rowsOf(m_folder.write("n.jsonl", "{\"q\":\"" + far + "\"}\n{\"q\":\"" + nul + "\"}\n")),
        "line 2: holds a byte"));
}

void TstRecordFormats::theReadingIsTold()
{
    const auto told = [&](const char* name, const char* text) {
        return describeReading(m_folder.write(name, text), {});
    };
    QCOMPARE(told("a.csv", "q;a\nx y;z\n"),
        std::string("CSV with semicolons, the first row is a header"));
    QVERIFY(contains(told("a.csv", "1,2\n3,4\n"), "without a header"));
    QCOMPARE(told("a.txt", "Once upon a time"), std::string("plain text"));
    QCOMPARE(told("a.txt", "{\"q\": 1}\n{\"q\": 2}\n"), std::string("JSON lines"));
    QCOMPARE(told("a.txt", ""), std::string());
}

MR_TEST(TstRecordFormats)

} // namespace mr::test::tst_record_formats

#include "tst_record_formats.moc"
