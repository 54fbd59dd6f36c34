// Lists of rows as text and back.

#include "support/test_room.h"

#include <millrace/row_list.h>

namespace mr::test::tst_row_list {

class TstRowList : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void textsAreRead_data();
    void textsAreRead();
    void partsThatAreNoRowsAreNamed_data();
    void partsThatAreNoRowsAreNamed();
    void rowsAreFound();
    void listsAreJoined();
};

void TstRowList::textsAreRead_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("written");
    QTest::addColumn<int>("count");

    const auto row = [](const char* name, const char* text, const char* written, int count) {
        QTest::newRow(name) << QString::fromLatin1(text) << QString::fromLatin1(written) << count;
    };
    row("none", "", "", 0);
    row("blank", " \n", "", 0);
    row("one", "7", "7", 1);
    row("rows and ranges", "2,5,8-11", "2,5,8-11", 6);
    row("in any order", "9, 3-4 ,1\n", "1,3-4,9", 4);
    row("that touch", "1,2,3", "1-3", 3);
    row("that overlap", "5-9,1-6", "1-9", 9);
    row("twice", "4,4", "4", 1);
    row("a file of lines with commas", "1,\n2,\n", "1-2", 2);
}

void TstRowList::textsAreRead()
{
    QFETCH(QString, text);
    QFETCH(QString, written);
    QFETCH(int, count);
    Result<RowList> rows = RowList::parse(text.toStdString());
    QVERIFY(rows.ok());
    QCOMPARE(QString::fromStdString(rows.value().text()), written);
    QCOMPARE(rows.value().count(), count);
    QVERIFY(RowList::parse(written.toStdString()).value() == rows.value());
}

void TstRowList::partsThatAreNoRowsAreNamed_data()
{
    QTest::addColumn<QString>("text");
    for (const char* text :
        {"x", "0", "-3", "5-2", "1-", "2 3", "1.5", "9999999999999999999", "3--4"})
        QTest::newRow(text) << QStringLiteral("1,") + QString::fromLatin1(text);
}

void TstRowList::partsThatAreNoRowsAreNamed()
{
    QFETCH(QString, text);
    const Result<RowList> rows = RowList::parse(text.toStdString());
    QVERIFY(!rows.ok());
    QVERIFY(QString::fromStdString(rows.status().message())
                .contains(QLatin1Char('\'') + text.mid(2) + QLatin1Char('\'')));
}

void TstRowList::rowsAreFound()
{
    const RowList rows({11, 2, 8, 5, 9, 10});
    std::string found;
    for (std::int64_t row = 0; row < 14; ++row)
        found += rows.contains(row) ? '1' : '0';
    QCOMPARE(found, std::string("00100100111100"));
    QVERIFY(!RowList().contains(1));
    QVERIFY(RowList().empty());
}

void TstRowList::listsAreJoined()
{
    RowList rows({1, 4});
    rows.add(RowList({2, 3, 9}));
    QCOMPARE(rows.text(), std::string("1-4,9"));
}

MR_TEST(TstRowList)

} // namespace mr::test::tst_row_list

#include "tst_row_list.moc"
