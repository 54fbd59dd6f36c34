// The ledger and the log as tables.

#include "models/event_table_model.h"
#include "models/stall_ledger_model.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_stall_ledger_model {

using mr::ui::EventTableModel;
using mr::ui::StallLedgerModel;

class TestStallLedgerModel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void sharesShownAddUpToOneHundredPercent()
    {
        StallLedgerModel model;
        QAbstractItemModelTester contract(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        mr::ui::StepSeries steps;
        steps.append(mr::ui::test::demoSteps(411));

        model.setTotals(mr::ui::ledgerTotals(steps, 0.0, 1000.0));

        qlonglong tenths = 0;
        qlonglong us = 0;
        const int total = model.rowCount() - 1;
        for (int row = 0; row < total; ++row) {
            tenths += model.index(row, StallLedgerModel::Share)
                          .data(StallLedgerModel::ValueRole)
                          .toLongLong();
            us += model.index(row, StallLedgerModel::Total)
                      .data(StallLedgerModel::ValueRole)
                      .toLongLong();
        }
        QCOMPARE(tenths, 1000LL);
        QCOMPARE(model.index(total, StallLedgerModel::Total)
                     .data(StallLedgerModel::ValueRole)
                     .toLongLong(),
            us);
        QCOMPARE(model.index(total, StallLedgerModel::Share).data().toString(),
            QStringLiteral("100.0\u00a0%"));
    }

    void whatARunDoesBesideItsStepsHasRows()
    {
        StallLedgerModel model;
        QAbstractItemModelTester contract(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        mr::ui::StepSeries steps;
        steps.append(mr::ui::test::demoSteps(10));
        mr::ui::LedgerTotals totals = mr::ui::ledgerTotals(steps, 0.0, 1000.0);
        const std::int64_t ofSteps = totals.wallUs;
        const int plain = model.rowCount();
        mr::IntervalRow opening;
        opening.beginUs = -3'000'000;
        mr::IntervalRow evaluation;
        evaluation.kind = mr::IntervalKind::Evaluation;
        evaluation.beginUs = 1'000'000;
        evaluation.endUs = 3'000'000;

        mr::ui::addIntervals(totals, std::vector<mr::IntervalRow>{opening, evaluation, evaluation});
        model.setTotals(totals);

        QCOMPARE(model.rowCount(), plain + 2);
        const auto at = [&model](int row, int column) {
            return model.index(row, column).data(StallLedgerModel::ValueRole).toLongLong();
        };
        const int total = model.rowCount() - 1;
        QCOMPARE(at(total, StallLedgerModel::Total), ofSteps + 7'000'000);
        QCOMPARE(model.index(total - 1, StallLedgerModel::Part).data().toString(), "Evaluation");
        QCOMPARE(at(total - 1, StallLedgerModel::Total), 4'000'000LL);
        qlonglong tenths = 0;
        for (int row = 0; row < total; ++row)
            tenths += at(row, StallLedgerModel::Share);
        QCOMPARE(tenths, 1000LL);
        QVERIFY(model.csv().contains("\nopening,3000000,"));
        model.setTotals(mr::ui::ledgerTotals(steps, 0.0, 1000.0));
        QCOMPARE(model.rowCount(), plain);
    }

    void anEmptyLedgerIsZeroAndNotOneHundredPercent()
    {
        StallLedgerModel model;

        model.setTotals({});

        QCOMPARE(model.index(model.rowCount() - 1, StallLedgerModel::Share).data().toString(),
            QStringLiteral("0.0\u00a0%"));
    }

    void eventsSentTwiceAreShownOnce()
    {
        EventTableModel model;
        QAbstractItemModelTester contract(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        QSignalSpy inserted(&model, &EventTableModel::rowsInserted);
        const std::vector<mr::EventRow> events = mr::ui::test::demoEvents(300);

        model.append(std::span(events).first(3));
        model.append(events);
        model.append(events);

        QCOMPARE(model.rowCount(), static_cast<int>(events.size()));
        QCOMPARE(inserted.count(), 2);
    }
};

MR_TEST_WITH_WINDOWS(TestStallLedgerModel)

} // namespace mr::test::tst_stall_ledger_model

#include "tst_stall_ledger_model.moc"
