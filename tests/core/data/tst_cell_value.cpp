// Roles and the parts of a row they take: columns, places within them, elements that another column
// chooses.

#include "core/data/cell_value.h"
#include "core/data/data_files.h"
#include "support/test_room.h"

namespace mr::test::tst_cell_value {

namespace {

const Record kRow{1, 1,
    {{"question", "How?", CellKind::Text}, {"number", "1.50", CellKind::Number},
        {"none", "", CellKind::Null}, {"a.b[c]", "strange", CellKind::Text},
        {"answers", R"({"text": ["so", "thus"], "start": [1, 2]})", CellKind::Nested},
        {"choices", R"(["red", "blue", "green"])", CellKind::Nested},
        {"arc", R"({"text": ["red", "blue"], "label": ["1", "2"]})", CellKind::Nested},
        {"second", "2", CellKind::Text}, {"letter", "C", CellKind::Text},
        {"index", "1", CellKind::Number}, {"none_yet", "-1", CellKind::Number},
        {"far", "7", CellKind::Number}, {"counts", R"(["2", "3", "4"])", CellKind::Nested}}};

std::string of(const char* expression)
{
    const Result<CellText> value = cellValue(kRow, expression);
    if (!value.ok())
        return "error: " + value.status().message();
    return Result(value).value().isThere ? Result(value).value().text : "nothing";
}

} // namespace

class TstCellValue : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void columnsAreTakenAsTheyStand();
    void placesWithin();
    void elementsThatAColumnChooses();
    void listsBecomeLines();
    void whatIsNotThereIsSaid();
    void columnsOfAnExpressionAreNamed();
};

void TstCellValue::columnsAreTakenAsTheyStand()
{
    QCOMPARE(of("question"), std::string("How?"));
    QCOMPARE(of("number"), std::string("1.50"));
    QCOMPARE(of("none"), std::string("nothing"));
    QCOMPARE(of("absent"), std::string("nothing"));
    QCOMPARE(of("a.b[c]"), std::string("strange"));
    QVERIFY(contains(of("choices"), "is a list or an object"));
}

void TstCellValue::placesWithin()
{
    QCOMPARE(of("answers.text[0]"), std::string("so"));
    QCOMPARE(of("answers.start[1]"), std::string("2"));
    QCOMPARE(of("answers.text[5]"), std::string("nothing"));
    QCOMPARE(of("answers.absent"), std::string("nothing"));
    QCOMPARE(of("choices[2]"), std::string("green"));
    QCOMPARE(of("question&choices[2]"), std::string("How?\ngreen"));
}

void TstCellValue::elementsThatAColumnChooses()
{
    QCOMPARE(of("choices[index]"), std::string("blue"));
    QCOMPARE(of("choices[letter]"), std::string("green"));
    QCOMPARE(of("choices[second-1]"), std::string("blue"));
    QCOMPARE(of("arc.text[second]"), std::string("blue")); // by label
    QCOMPARE(of("question+letter[index]"), std::string("C"));
    QCOMPARE(of("choices[none_yet]"), std::string("nothing"));
}

void TstCellValue::listsBecomeLines()
{
    QCOMPARE(of("choices[*]"), std::string("A. red\nB. blue\nC. green"));
    QCOMPARE(of("question+number[*]"), std::string("A. How?\nB. 1.5"));
}

void TstCellValue::whatIsNotThereIsSaid()
{
    QVERIFY(contains(of("choices[far]"), "none of the 3 elements"));
    QVERIFY(contains(of("question+letter"), "only to choose one"));
    QVERIFY(contains(of("question[*]"), "is not a list"));
    QVERIFY(contains(of("counts[second]"), "none of the 3 elements")); // the first, or the third?
}

void TstCellValue::columnsOfAnExpressionAreNamed()
{
    const auto isColumn = [](std::string_view name) { return name == "a.b"; };
    QCOMPARE(columnsOf("a.b", isColumn), (std::vector<std::string>{"a.b"}));
    QCOMPARE(columnsOf("answers.text[0]", isColumn), (std::vector<std::string>{"answers"}));
    QCOMPARE(columnsOf("q&sol1+sol2[label-1]", isColumn),
        (std::vector<std::string>{"q", "sol1", "sol2", "label"}));
    QCOMPARE(columnsOf("choices[*]", isColumn), (std::vector<std::string>{"choices"}));
}

MR_TEST(TstCellValue)

} // namespace mr::test::tst_cell_value

#include "tst_cell_value.moc"
