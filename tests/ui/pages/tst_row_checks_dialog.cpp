// The checks of a dataset's rows: findings are shown with their rows, and ticked ones are left out.

#include "models/checked_row_table.h"
#include "pages/row_checks_dialog.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"
#include "widgets/message_label.h"

#include <QAbstractItemModelTester>
#include <QListWidget>
#include <QPushButton>
#include <QSemaphore>
#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_row_checks_dialog {

using namespace mr::ui;
using namespace mr::ui::test;

class TestRowChecksDialog : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void findingsShowTheirRows();
    void tickedRowsAreChosen();
    void rowsExcludedBeforeAreTicked();
    void dataWithoutFindingsIsGood();
    void anErrorIsShown();
    void rowsThatCannotBeReadAgainAreSaid();
    void closingStopsTheChecks();

private:
    static CheckRequest request()
    {
        CheckRequest request;
        request.source.path = kGoodData;
        request.seqLen = 64;
        return request;
    }
    static std::unique_ptr<RowChecksDialog> made(
        const UiServices& services, const CheckRequest& request)
    {
        auto dialog = std::make_unique<RowChecksDialog>(services, request, nullptr);
        dialog->setAttribute(Qt::WA_DeleteOnClose, false);
        return dialog;
    }

    UiServices m_services = fakeServices(std::make_shared<FakeRun>());
};

void TestRowChecksDialog::findingsShowTheirRows()
{
    const auto dialog = made(m_services, request());
    QAbstractItemModelTester tester(
        dialog->rows(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    QVERIFY(dialog->busy() && !dialog->apply()->isEnabled());
    QTRY_VERIFY(!dialog->busy());

    QVERIFY(dialog->message()->text().contains(QStringLiteral("2,000 rows were checked")));
    QCOMPARE(dialog->findings()->count(), 3); // without evaluation data
    QCOMPARE(dialog->findings()->item(1)->text(), QStringLiteral("Repeat an earlier row: 4"));
    QCOMPARE(dialog->rows()->rowCount(), 3);
    dialog->findings()->setCurrentRow(1);
    QCOMPARE(dialog->rows()->rowCount(), 4);
    const auto cell = [&](int row, int column) {
        return dialog->rows()->index(row, column).data().toString();
    };
    QCOMPARE(cell(3, CheckedRowTable::Row), QStringLiteral("1,777"));
    QCOMPARE(cell(3, CheckedRowTable::Other), QStringLiteral("1,377"));
    QTRY_VERIFY(cell(3, CheckedRowTable::Text).contains(QStringLiteral("four boxes of six")));
}

void TestRowChecksDialog::tickedRowsAreChosen()
{
    const auto dialog = made(m_services, request());
    QSignalSpy chosen(dialog.get(), &RowChecksDialog::chosen);
    QTRY_VERIFY(!dialog->busy());
    dialog->findings()->item(1)->setCheckState(Qt::Checked);
    dialog->findings()->item(2)->setCheckState(Qt::Checked);

    dialog->apply()->click();

    QCOMPARE(chosen.count(), 1);
    QCOMPARE(chosen[0][0].value<RowList>().text(), std::string("411-413,1777,1801"));
}

void TestRowChecksDialog::rowsExcludedBeforeAreTicked()
{
    CheckRequest asked = request();
    asked.source.excluded = RowList({17, 930, 1204, 411});
    const auto dialog = made(m_services, asked);
    QTRY_VERIFY(!dialog->busy());
    QCOMPARE(dialog->findings()->item(0)->checkState(), Qt::Checked);
    QCOMPARE(dialog->findings()->item(1)->checkState(), Qt::Unchecked); // one of four
}

void TestRowChecksDialog::dataWithoutFindingsIsGood()
{
    m_services.checkDataset = [](const CheckRequest&) -> Result<DataChecks> {
        DataChecks checks;
        checks.rows = 7;
        return checks;
    };
    const auto dialog = made(m_services, request());
    QTRY_VERIFY(!dialog->busy());
    QCOMPARE(dialog->message()->kind(), MessageLabel::Kind::Good);
    QVERIFY(!dialog->apply()->isEnabled());
}

void TestRowChecksDialog::anErrorIsShown()
{
    m_services.checkDataset = [](const CheckRequest&) -> Result<DataChecks> {
        return Status::error(ErrorKind::Io, "questions.jsonl: the drive is gone");
    };
    const auto dialog = made(m_services, request());
    QTRY_VERIFY(!dialog->busy());
    QCOMPARE(dialog->message()->kind(), MessageLabel::Kind::Error);
    QVERIFY(dialog->message()->text().contains(QStringLiteral("the drive is gone")));
    QVERIFY(!dialog->apply()->isEnabled());
}

void TestRowChecksDialog::rowsThatCannotBeReadAgainAreSaid()
{
    m_services = fakeServices(std::make_shared<FakeRun>());
    m_services.readRowTexts = [](const DataSource&, const RowList&,
                                  std::size_t) -> Result<std::vector<RowText>> {
        return Status::error(ErrorKind::Io, "questions.jsonl: the file is gone");
    };
    const auto dialog = made(m_services, request());
    QTRY_COMPARE(dialog->message()->kind(), MessageLabel::Kind::Error);
    QVERIFY(dialog->message()->text().contains(QStringLiteral("the file is gone")));
    QVERIFY(dialog->findings()->count() > 0);
}

void TestRowChecksDialog::closingStopsTheChecks()
{
    QSemaphore stopped;
    m_services.checkDataset = [&stopped](const CheckRequest& asked) -> Result<DataChecks> {
        while (asked.onRows(5))
            QThread::msleep(1);
        stopped.release();
        return Status::error(ErrorKind::Cancelled, "the checks were stopped");
    };
    auto dialog = made(m_services, request());
    QTRY_VERIFY(dialog->message()->text().contains(QStringLiteral("5 rows so far")));
    dialog.reset();
    QVERIFY(stopped.tryAcquire(1, 5'000));
}

MR_TEST_WITH_WINDOWS(TestRowChecksDialog)

} // namespace mr::test::tst_row_checks_dialog

#include "tst_row_checks_dialog.moc"
