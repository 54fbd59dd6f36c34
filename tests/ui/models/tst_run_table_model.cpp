// The history's models keep Qt's contract while runs come, change and go; sorting is by number.

#include "models/run_filter_model.h"
#include "models/run_table_model.h"
#include "support/test_room.h"
#include "text/table_text.h"
#include "ui/support/demo_rows.h"

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_run_table_model {

using mr::ui::RunFilterModel;
using mr::ui::RunTableModel;
using mr::ui::test::demoRuns;

namespace {

mr::ui::RunRowsPtr shared(std::vector<RunRow> rows)
{
    return std::make_shared<const std::vector<RunRow>>(std::move(rows));
}

} // namespace

class TestRunTableModel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void newRunsAreInsertedWithoutAReset()
    {
        RunTableModel model;
        QAbstractItemModelTester contract(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        const mr::ui::RunRowsPtr all = demoRuns();
        std::vector<RunRow> rows(all->begin() + 1, all->end());
        model.setRuns(shared(rows));
        QSignalSpy reset(&model, &RunTableModel::modelReset);
        QSignalSpy inserted(&model, &RunTableModel::rowsInserted);

        model.setRuns(demoRuns());

        QCOMPARE(model.rowCount(), 7);
        QCOMPARE(reset.count(), 0); // a reset would lose the selection
        QCOMPARE(inserted.count(), 1);
        QCOMPARE(inserted[0][1].toInt(), 0);
    }

    void anAdapterIsNamedAndFound()
    {
        RunTableModel model;
        std::vector<RunRow> rows = *demoRuns();
        rows[1].configJson = "{\"method\":\"lora\",\"rank\":8}";
        model.setRuns(shared(rows));

        const auto text = [&](int row) {
            return model.index(row, RunTableModel::Method).data().toString();
        };
        QCOMPARE(text(0), QString());
        QCOMPARE(text(1), QString("adapter, rank 8"));
        RunFilterModel filter;
        filter.setSourceModel(&model);
        filter.setText("rank 8");
        QCOMPARE(filter.rowCount(), 1);
    }

    void changedRunsAreChangedInPlaceAndMissingOnesRemoved()
    {
        RunTableModel model;
        QAbstractItemModelTester contract(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        model.setRuns(demoRuns());
        QSignalSpy changed(&model, &RunTableModel::dataChanged);
        QSignalSpy removed(&model, &RunTableModel::rowsRemoved);
        std::vector<RunRow> rows = *demoRuns();
        rows[0].lastStep += 5;
        rows.erase(rows.begin() + 3);

        model.setRuns(shared(rows));

        QCOMPARE(model.rowCount(), 6);
        QCOMPARE(changed.count(), 1);
        QCOMPARE(removed.count(), 1);
    }

    void aRunThatMadeTheModelWorseIsNotSimplyDone()
    {
        std::vector<RunRow> rows = *demoRuns();
        rows[2].firstEval = 1.83; // it is done
        rows[2].lastEval = 2.4;
        rows[2].lastEvalStep = 300;
        RunTableModel model;
        model.setRuns(shared(rows));

        const QModelIndex state = model.index(2, RunTableModel::Status);
        QCOMPARE(state.data().toString(), QStringLiteral("Done, worse"));
        QVERIFY(state.data(Qt::ToolTipRole).toString().contains("2.4 against 1.83"));
        QCOMPARE(state.data(RunTableModel::StatusRole).toInt(), static_cast<int>(RunStatus::Done));
        QCOMPARE(model.index(3, RunTableModel::Status).data().toString(), QStringLiteral("Done"));
        QVERIFY(model.index(2, RunTableModel::BestEval)
                    .data(Qt::ToolTipRole)
                    .toString()
                    .contains("Before training: 1.83"));
    }

    void anotherOrderOfTheStoreIsFollowed()
    {
        RunTableModel model;
        QAbstractItemModelTester contract(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        model.setRuns(demoRuns());
        const mr::ui::RunRowsPtr all = demoRuns();
        std::vector<RunRow> rows(all->rbegin(), all->rend());

        model.setRuns(shared(rows));

        for (int row = 0; row < model.rowCount(); ++row)
            QCOMPARE(model.run(row)->id, rows[static_cast<std::size_t>(row)].id);
    }

    void whatIsNotKnownSortsLastBothWays()
    {
        RunTableModel model;
        model.setRuns(demoRuns()); // one has no evaluation
        RunFilterModel sorted;
        sorted.setSourceModel(&model);

        for (const Qt::SortOrder order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
            sorted.sort(RunTableModel::BestEval, order);
            const QModelIndex last = sorted.index(sorted.rowCount() - 1, RunTableModel::Name);
            QCOMPARE(last.data().toString(), QStringLiteral("Long context"));
        }
    }

    void numbersSortAsNumbers()
    {
        RunTableModel model;
        model.setRuns(demoRuns());
        RunFilterModel sorted;
        sorted.setSourceModel(&model);

        sorted.sort(RunTableModel::Steps, Qt::AscendingOrder);

        QCOMPARE(
            sorted.index(0, RunTableModel::Name).data().toString(), QStringLiteral("Long context"));
        QCOMPARE(sorted.index(6, RunTableModel::Name).data().toString(),
            QStringLiteral("Support tickets")); // 1,240 is more than 733
    }

    void theFilterWantsAllWordsAndTheState()
    {
        RunTableModel model;
        model.setRuns(demoRuns());
        RunFilterModel filtered;
        filtered.setSourceModel(&model);

        filtered.setText(QStringLiteral("llama BOOKS"));
        QCOMPARE(filtered.rowCount(), 2);
        filtered.setText(QStringLiteral("llama over"));
        QCOMPARE(filtered.rowCount(), 1);
        filtered.setText({});
        filtered.setStates(RunFilterModel::States::Failed); // and interrupted
        QCOMPARE(filtered.rowCount(), 2);
    }

    void csvQuotesWhatNeedsIt()
    {
        RunTableModel model;
        model.setRuns(demoRuns());

        const QString csv = mr::ui::tableText(model, {model.index(0, 0)}, QLatin1Char(','));
        const QString tsv = mr::ui::tableText(model, {model.index(0, 0)}, QLatin1Char('\t'));

        QVERIFY(csv.contains(QStringLiteral("\"Notes, second try\"")));
        QVERIFY(tsv.contains(QStringLiteral("\tNotes, second try\t")));
        QCOMPARE(tsv.count(QLatin1Char('\n')), 2);
    }
};

MR_TEST_WITH_WINDOWS(TestRunTableModel)

} // namespace mr::test::tst_run_table_model

#include "tst_run_table_model.moc"
