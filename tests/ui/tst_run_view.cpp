// RunView: from the ledger to the timeline of the step that explains it.

#include "charts/chart_panel.h"
#include "charts/forecast_panel.h"
#include "charts/line_chart.h"
#include "charts/step_timeline.h"
#include "charts/tier_map.h"
#include "charts/timeline_section.h"
#include "models/export_table_model.h"
#include "models/forecast_model.h"
#include "models/run_progress.h"
#include "models/stall_ledger_model.h"
#include "models/tier_map_model.h"
#include "pages/pause_panel.h"
#include "pages/run_view.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"
#include "ui/support/demo_timeline.h"

#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include <span>
#include <vector>

namespace mr::test::tst_run_view {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

QTableView* ledgerOf(const RunView& view)
{
    for (QTableView* table : view.findChildren<QTableView*>()) {
        if (table->model() == view.ledger())
            return table;
    }
    return nullptr;
}

void answer(RunView& view, qint64 step)
{
    view.setTimeline(
        std::make_shared<const StepTimeline>(demoTimeline(DemoPolicy::ZeroOffload, step)));
}

} // namespace

class TestRunView : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void aClickOnTheLedgerOpensTheWorstStepAtItsWait()
    {
        RunView view;
        view.resize(1200, 800);
        view.show();
        view.setSnapshot(demoSnapshot(412, 600));
        answer(view, 400);
        QSignalSpy asked(&view, &RunView::timelineRequested);
        QTableView* table = ledgerOf(view);
        QVERIFY(table != nullptr);
        const QModelIndex row = view.ledger()->index(3, StallLedgerModel::Part); // host update

        QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(row).center());

        QCOMPARE(asked.count(), 1);
        answer(view, asked[0][0].toLongLong());
        const StepTimelineChart* chart = view.timeline()->chart();
        QVERIFY(chart->selected() >= 0);
        QVERIFY(chart->timeline()->spans[static_cast<std::size_t>(chart->selected())].cause ==
                StallCause::HostUpdate);
    }

    void aPausedRunSaysWhatItNeedsAndOffersThreeWaysOn()
    {
        RunView view;
        view.resize(1200, 800);
        view.show();
        view.setSnapshot(demoSnapshot(412, 600));
        auto* panel = view.findChild<PausePanel*>();
        QVERIFY(panel->isHidden());
        QSignalSpy answers(&view, &RunView::pauseAnswered);

        view.setSnapshot(demoPaused(412, 600, true));

        QVERIFY(panel->isVisible());
        QString all;
        for (const QLabel* label : panel->findChildren<QLabel*>())
            all += label->text() + '\n';
        all.replace(QChar::Nbsp, QChar(' ')); // before units
        for (const char* part : {"the disk is full", "checkpoint of step 412 needs 4.10 GiB",
                 "/data/runs/notes", "1.20 GiB are free", "Nothing is lost"})
            QVERIFY2(all.contains(QLatin1String(part)), qPrintable(all));
        QVERIFY(progressOf(*view.snapshot()).remainingSeconds < 0.0); // nobody knows
        auto* again = panel->findChild<QPushButton*>("pause-again");
        auto* without = panel->findChild<QPushButton*>("pause-without");
        QVERIFY(panel->findChild<QPushButton*>("pause-folder")->isEnabled());
        without->click();
        QCOMPARE(answers.count(), 1);
        QVERIFY(answers[0][0].value<PauseAnswer>().kind == PauseAnswer::Kind::GoOnWithout);
        view.setSnapshot(demoPaused(412, 600, true)); // still paused: an answer is on its way
        QVERIFY(!again->isEnabled());
        auto next = std::make_shared<RunSnapshot>(*demoPaused(412, 600, false));
        next->events.back().id += 1; // it tried, and could not
        view.setSnapshot(next);
        QVERIFY(again->isEnabled());
        again->click();
        QVERIFY(answers[1][0].value<PauseAnswer>().kind == PauseAnswer::Kind::TryAgain);
        view.setSnapshot(demoSnapshot(420, 600));
        QVERIFY(panel->isHidden());
    }

    void whyAFolderCannotBeWrittenIsSaidAndAnOldRunHasNoButtons()
    {
        RunView view;
        view.show();
        view.setAnswerable(false);

        view.setSnapshot(demoPaused(412, 600, false));

        auto* panel = view.findChild<PausePanel*>();
        QVERIFY(panel->isVisible());
        QVERIFY(!panel->findChild<QPushButton*>("pause-again")->isVisible());
        QString all;
        for (const QLabel* label : panel->findChildren<QLabel*>())
            all += label->text() + '\n';
        QVERIFY2(all.contains("folder cannot be written"), qPrintable(all));
        QVERIFY2(all.contains("Read-only file system"), qPrintable(all));
    }

    void aCauseWithoutAKeptStepIsSaidSo()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(30, 600));
        QSignalSpy asked(&view, &RunView::timelineRequested);

        view.showWorst(1);

        QCOMPARE(asked.count(), 0);
        bool said = false;
        for (const QLabel* label : view.findChildren<QLabel*>())
            said = said || label->text().contains(QStringLiteral("no timeline was kept")) ||
                   label->text().contains(QStringLiteral("no timeline"));
        QVERIFY(said);
    }

    void theLedgerAddsUpToAHundredPercent()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));
        const StallLedgerModel& ledger = *view.ledger();
        qint64 tenths = 0;
        for (int row = 0; row + 1 < ledger.rowCount(); ++row)
            tenths += ledger.index(row, StallLedgerModel::Share)
                          .data(StallLedgerModel::ValueRole)
                          .toLongLong();

        QCOMPARE(tenths, 1000LL);
    }

    void aRunWithoutAForecastSaysSo()
    {
        auto run = std::make_shared<RunSnapshot>(*demoSnapshot(60, 600));
        auto plan = std::make_shared<PlanReport>(demoPlan());
        plan->predictedStepMs = 0.0;
        run->plan = plan;
        RunView view;

        view.setSnapshot(run);

        QVERIFY(!view.forecast()->model()->hasForecast());
        QVERIFY(view.forecast()->table()->isRowHidden(ForecastModel::Difference));
        QCOMPARE(view.tierMap()->model()->rowCount(), 26);
    }

    // Shown from the first step that reads or writes, and gone with the run that did.
    void diskTrafficIsShownWhereARunHasAny()
    {
        const auto without = demoSnapshot(30, 600);
        const auto with = std::make_shared<RunSnapshot>(*without);
        std::vector<StepRow> rows = demoSteps(31);
        rows.back().diskReadBytes = 12'000'000'000;
        rows.back().wallUs = 4'000'000;
        with->steps.append(std::span(rows).last(1));
        const auto another = std::make_shared<RunSnapshot>(*without);
        another->generation = with->generation + 1;
        RunView view;
        view.resize(1200, 800);
        view.show();
        const auto panel = [&view] { return view.findChild<QWidget*>("disk-traffic"); };
        const auto overlaps = [&view] {
            const auto parts = view.findChildren<ChartPanel*>();
            for (const ChartPanel* a : parts)
                for (const ChartPanel* b : parts)
                    if (a != b && a->isVisible() && b->isVisible() &&
                        a->parentWidget() == b->parentWidget() &&
                        a->geometry().intersects(b->geometry()))
                        return true;
            return false;
        };
        QVERIFY(panel() != nullptr); // it has an owner

        view.setSnapshot(without);
        QVERIFY(!panel()->isVisible());
        view.setSnapshot(with);
        QCoreApplication::processEvents();
        QVERIFY(panel()->isVisible());
        QVERIFY(!overlaps());
        const auto* chart = panel()->findChild<LineChart*>();
        QVERIFY(chart->csv().contains("\n31,3,0"));
        view.setSnapshot(another);
        QCoreApplication::processEvents();
        QVERIFY(!panel()->isVisible());
        QVERIFY(!overlaps());
    }

    void exportsAreShownWhereARunHasAny()
    {
        RunView view;
        view.resize(1200, 800);
        view.show();
        view.setSnapshot(demoSnapshot(60, 60, RunStatus::Done));
        QVERIFY(!view.exports()->isVisible());

        view.setSnapshot(demoExported(60));

        QVERIFY(view.exports()->isVisible());
        const auto* table = view.exports()->findChild<QTableView*>();
        const QAbstractItemModel& model = *table->model();
        QCOMPARE(model.rowCount(), 3);
        const auto shown = [&model](int row, int column, int role = Qt::DisplayRole) {
            return model.index(row, column).data(role).toString().replace(QChar::Nbsp, u' ');
        };
        using Table = ExportTableModel;
        QCOMPARE(shown(0, Table::Form), QStringLiteral("GGUF file"));
        QCOMPARE(shown(0, Table::Check), QStringLiteral("Failed its check"));
        QVERIFY(!model.index(0, Table::Check).data(TableModel::ValueRole).toBool());
        QVERIFY(shown(0, Table::Path).endsWith(QStringLiteral(".failed.gguf")));
        const QString said = shown(0, Table::Check, Qt::ToolTipRole);
        QVERIFY2(said.startsWith(QStringLiteral("<p>3 of 200 texts")), qPrintable(said)); // why
        QVERIFY2(said.contains(QStringLiteral("&lt;s&gt;")), qPrintable(said)); // text, not markup
        QCOMPARE(shown(1, Table::Form), QStringLiteral("Ollama folder"));
        QCOMPARE(shown(1, Table::Check), QStringLiteral("Passed its check"));
        QCOMPARE(shown(1, Table::Type), QStringLiteral("q8_0"));
        QCOMPARE(shown(1, Table::Size), QStringLiteral("1.10 GiB"));
        QVERIFY(!shown(1, Table::Time).isEmpty());
        QCOMPARE(shown(2, Table::Form), QStringLiteral("tablet")); // of a newer program
        QCOMPARE(shown(2, Table::Size), QStringLiteral("–"));
        view.setSnapshot(demoSnapshot(60, 60, RunStatus::Done));
        QVERIFY(!view.exports()->isVisible());
    }

    void anotherRunTakesItsTimelineAway()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));
        answer(view, 400);
        QVERIFY(view.timeline()->chart()->timeline() != nullptr);
        auto other = std::make_shared<RunSnapshot>(*demoSnapshot(30, 600));
        other->generation = 9;

        view.setSnapshot(other);

        QVERIFY(view.timeline()->chart()->timeline() == nullptr);
    }
};

MR_TEST_WITH_WINDOWS(TestRunView)

} // namespace mr::test::tst_run_view

#include "tst_run_view.moc"
