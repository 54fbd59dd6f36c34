// A comparison from the New run page to the Compare page: its question, runs, charts and words.

#include "bridge/run_queue.h"
#include "charts/line_chart.h"
#include "charts/loss_overlay.h"
#include "charts/step_bars_panel.h"
#include "language.h"
#include "main_window.h"
#include "math/share_bar.h"
#include "models/run_draft.h"
#include "models/settings_model.h"
#include "models/stall_ledger_model.h"
#include "pages/compare_header.h"
#include "pages/compare_page.h"
#include "pages/compare_view.h"
#include "pages/dataset_section.h"
#include "pages/new_run_page.h"
#include "pages/policy_choice.h"
#include "pages/settings_form.h"
#include "support/test_room.h"
#include "theme.h"
#include "ui/support/demo_pair.h"
#include "ui/support/demo_rows.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/message_label.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QStackedWidget>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cmath>

namespace mr::test::tst_compare_page {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

RunSpec goodSpec()
{
    RunSpec spec;
    spec.name = "Notes";
    spec.modelDir = kGoodModel;
    spec.data.push_back({kGoodData, DataFormat::Auto, {}});
    spec.policy = "zero-offload";
    return spec;
}

void chooseSecond(NewRunPage& page, const QString& policy)
{
    PolicyChoice* policies = page.settings()->policies();
    policies->compare()->setChecked(true);
    policies->second()->setCurrentIndex(policies->second()->findData(policy));
}

bool says(const QWidget& widget, const QString& text)
{
    for (const auto* label : widget.findChildren<QLabel*>()) {
        if (label->isVisibleTo(&widget) && label->text().contains(text))
            return true;
    }
    return false;
}

qint64 tenths(const StallLedgerModel& ledger)
{
    qint64 sum = 0;
    for (int row = 0; row + 1 < ledger.rowCount(); ++row)
        sum += ledger.index(row, StallLedgerModel::Share)
                   .data(StallLedgerModel::ValueRole)
                   .toLongLong();
    return sum;
}

std::size_t openedCount(FakeRun& run)
{
    const std::scoped_lock lock(run.mutex);
    return run.opened.size();
}

} // namespace

class TestComparePage : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        keepSettingsIn(m_folder.path());
    }

    void theNewRunPagePlansAndStartsBoth()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy both(&page, &NewRunPage::comparisonRequested);
        QSignalSpy one(&page, &NewRunPage::startRequested);
        page.setSpec(goodSpec());
        chooseSecond(page, "zenflow");
        QTRY_VERIFY(page.planPanel()->compared() && page.datasetSection()->info());

        page.start();

        QVERIFY(says(*page.planPanel(), "Policy: zero-offload, exact"));
        QVERIFY(says(*page.planPanel(), "Compared with: zenflow, at most 7 step"));
        QVERIFY(says(*page.planPanel(), "One step of zenflow"));
        QCOMPARE(one.count(), 0);
        QCOMPARE(both.count(), 1);
        const auto runs = both[0][0].value<std::vector<RunSpec>>();
        QCOMPARE(runs.size(), std::size_t{2});
        QCOMPARE(runs[0].name, std::string("Notes: zero-offload"));
        QCOMPARE(runs[1].name, std::string("Notes: zenflow"));
        QCOMPARE(runs[0].seed, runs[1].seed);
    }

    void withoutTheTickOneRunIsStartedAsBefore()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy both(&page, &NewRunPage::comparisonRequested);
        QSignalSpy one(&page, &NewRunPage::startRequested);
        page.setSpec(goodSpec());
        QTRY_VERIFY(page.planPanel()->plan() && page.datasetSection()->info());

        page.start();

        QCOMPARE(both.count(), 0);
        QCOMPARE(one.count(), 1);
        QCOMPARE(one[0][0].value<RunSpec>().name, std::string("Notes"));
        QVERIFY(!page.settings()->policies()->second()->isEnabled());
    }

    void aPolicyIsNotComparedWithItself()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy both(&page, &NewRunPage::comparisonRequested);
        page.setSpec(goodSpec());
        chooseSecond(page, "zero-offload");
        QTRY_VERIFY(page.planPanel()->compared() && page.datasetSection()->info());

        page.start();

        QCOMPARE(both.count(), 0);
        QCOMPARE(page.startMessage()->text(), QString("Choose another policy to compare with."));
    }

    void aSecondPlanThatDoesNotFitIsNotStarted()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.planRun = [](const RunSpec& spec) -> Result<PlanReport> {
            PlanReport plan = fakePlan(spec.policy != "zenflow");
            plan.policy = spec.policy;
            return plan;
        };
        NewRunPage page(services);
        QSignalSpy both(&page, &NewRunPage::comparisonRequested);
        page.setSpec(goodSpec());
        chooseSecond(page, "zenflow");
        QTRY_VERIFY(page.planPanel()->compared() && page.datasetSection()->info());

        page.start();

        QCOMPARE(both.count(), 0);
        QVERIFY2(page.planPanel()->headline().startsWith("zenflow does not fit."),
            qPrintable(page.planPanel()->headline()));
    }

    void bothCommandsAreCopied()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        page.setSpec(goodSpec());
        chooseSecond(page, "zenflow");

        const QStringList lines = page.commandLine().split(" &&\n");

        QCOMPARE(lines.size(), 2);
        QVERIFY(lines[0].contains("--policy zero-offload"));
        QVERIFY(lines[1].contains("--policy zenflow"));
    }

    void anEmptyPageSaysHowToCompare()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy newRun(&page, &ComparePage::newRunRequested);

        QVERIFY(says(page, "Nothing is compared yet."));
        for (auto* button : page.findChildren<QPushButton*>()) {
            if (button->text() == "New run")
                button->click();
        }

        QCOMPARE(newRun.count(), 1);
    }

    void bothLedgersAreWholeAndTheBarsShareOneScale()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        const auto [first, second] = demoPair(300, 300);

        page.showSnapshot(0, first);
        page.showSnapshot(1, second);

        const CompareView* view = page.view();
        QCOMPARE(tenths(*view->ledger(0)), 1000LL);
        QCOMPARE(tenths(*view->ledger(1)), 1000LL);
        const auto bar = [view](int row) {
            return view->bars()
                ->model()
                ->index(row, StepBarsModel::Picture)
                .data(kShareRole)
                .value<ShareBar>();
        };
        QVERIFY(bar(0).whole > 0.0);
        QCOMPARE(bar(0).whole, bar(1).whole);
        QVERIFY2(view->header()->sentence().startsWith("zenflow: 1."),
            qPrintable(view->header()->sentence()));
        QVERIFY(view->header()->sentence().contains("held-out loss"));
        QVERIFY(view->header()->differences()->text().isEmpty());
    }

    void longNamesDoNotWidenTheWindow()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        auto [first, second] = demoPair(140, 600);
        page.showSnapshot(0, first);
        page.showSnapshot(1, second);
        const int before = page.minimumSizeHint().width();
        const auto named = [](const RunSnapshotPtr& run, const char* word) {
            auto renamed = std::make_shared<RunSnapshot>(*run);
            renamed->run.name = std::string(200, 'n') + word;
            renamed->run.planJson.clear();
            renamed->run.configJson.clear();
            return renamed;
        };

        page.showSnapshot(0, named(first, "first"));
        page.showSnapshot(1, named(second, "second"));

        QVERIFY2(page.minimumSizeHint().width() <= std::max(before, 700),
            qPrintable(QString("%1 to %2").arg(before).arg(page.minimumSizeHint().width())));
    }

    void bothLossesAreInOneChart()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        const auto [first, second] = demoPair(120, 300);
        page.showSnapshot(0, first);
        page.showSnapshot(1, second);

        const QByteArray csv = page.view()->losses()->chart()->csv();

        QVERIFY2(csv.startsWith("step,loss_ema_1,loss_ema_2,eval_loss_1,eval_loss_2\n"),
            csv.left(100).constData());
        QVERIFY(page.view()->losses()->chart()->readout().contains("zenflow, held out"));
    }

    // Runs of different lengths: the shorter one ends where it ended, and time is not steps.
    void theLossesAreComparedOverStepsOrTime()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        const auto [first, second] = demoPair(120, 300);
        page.showSnapshot(0, first);
        page.showSnapshot(1, second);
        LossOverlay* losses = page.view()->losses();

        losses->axis()->setCurrentIndex(1);

        const QList<QByteArray> lines = losses->chart()->csv().split('\n');
        QVERIFY2(lines[0].startsWith("time_s,"), lines[0].constData());
        double last = 0.0;
        for (const QByteArray& line : lines)
            last = std::max(last, line.split(',').first().toDouble());
        const double firstEnd = static_cast<double>(first->evalLoss.back().timeMs) / 1e3;
        const double expected =
            std::max(firstEnd, static_cast<double>(first->steps.back().timeMs) / 1e3);
        QVERIFY2(std::abs(last - expected) < 0.01, qPrintable(QString::number(last)));
        losses->axis()->setCurrentIndex(0);
        QVERIFY(losses->chart()->csv().startsWith("step,"));
    }

    void theSettingsThatDifferAreListed()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        const auto [first, second] = demoPair(300, 300);
        auto failed = std::make_shared<RunSnapshot>(*second);
        failed->run.status = RunStatus::Failed;
        failed->run.configJson = R"({"seed":2,"steps":300,"policy":"zenflow"})";
        page.showSnapshot(0, first);
        page.showSnapshot(1, failed);
        const SettingsModel* settings = page.view()->settings();

        QCOMPARE(settings->rowCount(), 2); // policy and seed
        page.view()->allSettings()->setChecked(true);

        QCOMPARE(settings->rowCount(), 3);
    }

    void whatDiffersBesideThePolicyIsSaid()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        const auto [first, second] = demoPair(300, 300);
        auto other = std::make_shared<RunSnapshot>(*second);
        other->run.configJson = R"({"seed":2,"steps":300})";

        page.showSnapshot(0, first);
        page.showSnapshot(1, other);

        QVERIFY(page.view()->header()->differences()->text().contains("seed: 1, 2"));
    }

    void whileTheFirstRunsTheSecondIsSaidToWait()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        page.compare(0, 0, "Notes: zenflow");

        page.showSnapshot(0, demoPair(300, 300)[0]);

        QCOMPARE(page.view()->header()->sentence(),
            QString("“Notes: zenflow” starts when “Notes: zero-offload” is done."));
        QVERIFY(says(page, "Queued"));
        const StallLedgerModel* ledger = page.view()->ledger(1);
        QCOMPARE(ledger->index(0, StallLedgerModel::Total).data().toString(), QString("–"));
        QCOMPARE(tenths(*page.view()->ledger(0)), 1000LL);
    }

    void aSecondRunThatIsDroppedIsNoLongerAnnounced()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        page.compare(0, 0, "Notes: zenflow");
        page.showSnapshot(0, demoPair(300, 300)[0]);

        page.showProblem("It was not started.");

        QVERIFY(page.view()->header()->sentence().isEmpty());
        QVERIFY(says(page, "Not started"));
        QVERIFY(!says(page, "Queued"));
        QVERIFY(says(page, "It was not started."));
    }

    void theLanguageChangesWithoutLosingTheComparison()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        const auto [first, second] = demoPair(300, 300);
        page.showSnapshot(0, first);
        page.showSnapshot(1, second);
        Language language;

        language.choose("ja");
        QCoreApplication::sendPostedEvents();

        const QString sentence = page.view()->header()->sentence();
        language.choose("en");
        QVERIFY2(
            sentence.contains("zenflow") && !sentence.contains("faster"), qPrintable(sentence));
        QCOMPARE(tenths(*page.view()->ledger(1)), 1000LL);
    }

    void theWindowStartsTheSecondAfterTheFirst()
    {
        const auto run = std::make_shared<FakeRun>();
        Theme theme;
        Language language;
        MainWindow window(fakeServices(run, demoRuns()), theme, language);

        window.startComparison(comparisonSpecs(goodSpec(), "zenflow"));
        QCOMPARE(window.page(), MainWindow::Page::Compare);
        QTRY_COMPARE(window.compare()->runId(0), 7LL);
        QCOMPARE(window.compare()->runId(1), 0LL);
        run->finish();

        QTRY_COMPARE(window.compare()->runId(1), 8LL);
        QCOMPARE(window.compare()->runId(0), 7LL);
        QCOMPARE(run->opened[1].database, std::string("/nowhere/history.db"));
        run->finish();
        QTRY_VERIFY(!window.controller()->busy());
    }

    void aStoppedFirstRunIsSaidToHaveEndedTheComparison()
    {
        const auto run = std::make_shared<FakeRun>();
        Theme theme;
        Language language;
        MainWindow window(fakeServices(run, demoRuns()), theme, language);
        window.startComparison(comparisonSpecs(goodSpec(), "zenflow"));
        QTRY_COMPARE(window.compare()->runId(0), 7LL);

        window.controller()->requestStop();

        const QString sentence = "“Notes: zenflow” was not started, because “Notes: zero-offload” "
                                 "was stopped.";
        QTRY_VERIFY(window.compare()->view()->header()->problem()->text() == sentence);
        QCOMPARE(openedCount(*run), std::size_t{1});
        QVERIFY(says(window, sentence));
    }

    void theWayToAllChartsOfARunIsOneClick()
    {
        ComparePage page(fakeServices(std::make_shared<FakeRun>()));
        const auto [first, second] = demoPair(120, 300);
        page.showSnapshot(0, first);
        page.showSnapshot(1, second);
        QSignalSpy open(&page, &ComparePage::openRequested);

        for (auto* button : page.view()->header()->findChildren<QPushButton*>())
            button->click();

        QCOMPARE(open.count(), 2);
        QCOMPARE(open[0][0].toLongLong(), qint64{first->run.id});
        QCOMPARE(open[0][1].toBool(), false);
        QCOMPARE(open[1][0].toLongLong(), qint64{second->run.id});
        QCOMPARE(open[1][1].toBool(), true); // it is live
    }

private:
    QTemporaryDir m_folder;
};

MR_TEST_WITH_WINDOWS(TestComparePage)

} // namespace mr::test::tst_compare_page

#include "tst_compare_page.moc"
