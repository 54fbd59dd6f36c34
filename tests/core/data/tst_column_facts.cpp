// Facts about columns: kinds over every row, looks over a sample of the whole file.

#include "core/data/column_facts.h"
#include "core/data/data_files.h"
#include "support/test_room.h"

namespace mr::test::tst_column_facts {

namespace {

ColumnFacts factsOf(const std::vector<Cell>& cells)
{
    FactsCollector facts;
    for (std::size_t i = 0; i < cells.size(); ++i)
        facts.add({static_cast<std::int64_t>(i) + 1, 1, {cells[i]}});
    return facts.finish().at(0);
}

ColumnFacts ofTexts(const std::vector<std::string>& texts)
{
    std::vector<Cell> cells;
    cells.reserve(texts.size());
    for (const std::string& text : texts)
        cells.push_back({"c", text, CellKind::Text});
    return factsOf(cells);
}

CellShape shapeOf(const char* json, CellKind kind = CellKind::Nested)
{
    return factsOf({{"c", json, kind}}).shape;
}

} // namespace

class TstColumnFacts : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void kindsComeFromEveryRow();
    void shapesOfLists_data();
    void shapesOfLists();
    void looksOfTexts();
    void textsWithinOthersAreFound();
    void aSampleIsSpreadOverTheFile();
    void manyColumnsAreNoTrouble();
};

void TstColumnFacts::kindsComeFromEveryRow()
{
    FactsCollector collector;
    collector.add({1, 1, {{"a", "x", CellKind::Text}, {"b", "", CellKind::Null}}});
    collector.add({2, 2, {{"b", "1", CellKind::Number}, {"c", "", CellKind::Nested}}});
    collector.add({3, 3, {{"d", "true", CellKind::Number}}});
    const std::vector<ColumnFacts> facts = collector.finish();

    QCOMPARE(facts.size(), 4U);
    QVERIFY(facts[0].text && !facts[1].text && !facts[2].text);
    QVERIFY(!facts[0].nested && !facts[1].nested && facts[2].nested);
    QVERIFY(facts[3].truth && !facts[3].bad && !facts[1].truth);
    QCOMPARE(facts[2].firstRow, 2);
    QCOMPARE(facts[1].rows, 1);
}

void TstColumnFacts::shapesOfLists_data()
{
    QTest::addColumn<QByteArray>("json");
    QTest::addColumn<int>("shape");
    const auto row = [](const char* json, CellShape shape) {
        QTest::newRow(json) << QByteArray(json) << static_cast<int>(shape);
    };
    row(R"([{"role": "user", "content": "a, ]"}])", CellShape::RoleContent);
    row(R"([{"role": "assistant", "tool_calls": []}])", CellShape::RoleContent);
    row(R"([{"from": "human", "value": "a"}])", CellShape::FromValue);
    row(R"([{"role": "user", "parts": [{"text": "a"}]}])", CellShape::RoleParts);
    row(R"([{"input": "a", "output": "b"}])", CellShape::InputOutput);
    row(R"([{"human": "a", "assistant": "b"}])", CellShape::HumanAssistant);
    row(R"(["a", "b \" , ]"])", CellShape::Texts);
    row(R"([["a", "b"], ["c", "d"]])", CellShape::TextPairs);
    row(R"([{"text": "a", "score": 1}])", CellShape::Objects);
    row(R"({"text": ["a"]})", CellShape::Object);
    row("[1, 2]", CellShape::Values);
    row("[]", CellShape::None);
}

void TstColumnFacts::shapesOfLists()
{
    QFETCH(const QByteArray, json);
    QFETCH(const int, shape);
    QCOMPARE(static_cast<int>(shapeOf(json.constData())), shape);
}

void TstColumnFacts::looksOfTexts()
{
    const ColumnFacts ids = ofTexts({"a-17", "b_18", "c/19"});
    QCOMPARE(ids.identifiers, 1.0);
    QCOMPARE(ids.spaced, 0.0);
    QCOMPARE(ids.distinct, 3);
    QCOMPARE(ofTexts({"2024-01-31", "2024/02/01", "2024-02-03T10:00:00Z"}).dates, 1.0);
    QCOMPARE(ofTexts({"https://a.b/c", "img/a.jpg"}).links, 1.0);
    QVERIFY(ofTexts({"1", "-2.5", "1e9"}).isNumeric());
    QVERIFY(!ofTexts({"1", "two"}).isNumeric());
    QCOMPARE(ofTexts({"two words", "one", "日本語", "x"}).spaced, 0.5);
    QCOMPARE(ofTexts({"Good", "bad", "good"}).values, (std::vector<std::string>{"good", "bad"}));
    QCOMPARE(shapeOf(R"([{"role": "user", "content": "a"}])", CellKind::Text),
        CellShape::RoleContent); // as CSV has it
}

void TstColumnFacts::textsWithinOthersAreFound()
{
    FactsCollector collector;
    for (int i = 0; i < 5; ++i) {
        const std::string n = std::to_string(i);
        collector.add({i + 1, 1,
            {{"q", "ask \"" + n + "\"", CellKind::Text},
                {"all", R"([{"content": "ask \")" + n + R"(\", and so on"}])", CellKind::Nested},
                {"part", i < 4 ? "ask" : "else", CellKind::Text}}});
    }
    const std::vector<ColumnFacts> facts = collector.finish();

    QVERIFY(facts[0].isWithin("all"));
    QVERIFY(!facts[1].isWithin("q"));
    QVERIFY(!facts[2].isWithin("q") && !facts[2].isWithin("all"));
}

void TstColumnFacts::aSampleIsSpreadOverTheFile()
{
    FactsCollector collector;
    for (int i = 0; i < 100000; ++i)
        collector.add({i + 1, 1, {{"c", i < 50000 ? "one" : "two words", CellKind::Text}}});
    const ColumnFacts facts = collector.finish().at(0);

    QCOMPARE(facts.rows, 100000);
    QVERIFY(facts.sampled >= 128 && facts.sampled <= 1024);
    QVERIFY(facts.spaced > 0.45 && facts.spaced < 0.55);
}

void TstColumnFacts::manyColumnsAreNoTrouble()
{
    Record record{1, 1, {}};
    for (int i = 0; i < 200000; ++i)
        record.cells.push_back({"c" + std::to_string(i), "x", CellKind::Text});
    FactsCollector collector;
    collector.add(record);
    collector.add(record);
    QCOMPARE(collector.finish().size(), 200000U);
}

MR_TEST(TstColumnFacts)

} // namespace mr::test::tst_column_facts

#include "tst_column_facts.moc"
