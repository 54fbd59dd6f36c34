// The export of a chart reads back as a table.

#include "models/csv_table_model.h"
#include "support/test_room.h"

#include <QAbstractItemModelTester>
#include <QTest>

namespace mr::test::tst_csv_table_model {

using namespace mr::ui;

class TestCsvTableModel : public QObject
{
    Q_OBJECT

private slots:

    void titlesAndCellsAreRead()
    {
        CsvTableModel model("step,loss\n1,2.5\n2,nan\n");
        const QAbstractItemModelTester tester(&model);

        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.columnCount(), 2);
        QCOMPARE(model.headerData(1, Qt::Horizontal).toString(), QString("loss"));
        QCOMPARE(model.index(0, 1).data().toString(), QString("2.5"));
        QCOMPARE(model.index(0, 1).data(TableModel::ValueRole).toDouble(), 2.5);
    }

    void quotedCellsKeepCommasQuotesAndLines()
    {
        const CsvTableModel model("a,b\r\n\"x, \"\"y\"\"\nz\",\"\"\r\n");

        QCOMPARE(model.rowCount(), 1);
        QCOMPARE(model.index(0, 0).data().toString(), QString("x, \"y\"\nz"));
        QCOMPARE(model.index(0, 1).data().toString(), QString());
    }

    void shortRowsEndInEmptyCellsAndLongOnesAreCut()
    {
        const CsvTableModel model("a,b\n1\n1,2,3");

        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.index(0, 1).data().toString(), QString());
        QCOMPARE(model.index(1, 1).data().toString(), QString("2"));
    }

    void nothingIsAnEmptyTable()
    {
        const CsvTableModel model("");

        QCOMPARE(model.rowCount(), 0);
        QCOMPARE(model.columnCount(), 0);
    }
};

MR_TEST(TestCsvTableModel)

} // namespace mr::test::tst_csv_table_model

#include "tst_csv_table_model.moc"
