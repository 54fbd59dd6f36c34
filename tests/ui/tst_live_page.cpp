// The Live page: from "no run" to charts, with one way to stop, all of it by keyboard.

#include "charts/chart_panel.h"
#include "charts/line_chart.h"
#include "charts/machine_section.h"
#include "charts/stall_strip.h"
#include "models/run_snapshot.h"
#include "models/stall_ledger_model.h"
#include "pages/live_page.h"
#include "pages/run_header.h"
#include "pages/run_view.h"
#include "support/test_room.h"
#include "text/units.h"
#include "ui/support/demo_rows.h"

#include <QAccessible>
#include <QDialog>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QTest>
#include <QTimer>
#include <QToolButton>

#include <limits>

namespace mr::test::tst_live_page {

using mr::ui::LivePage;
using mr::ui::RunView;
using mr::ui::UiServices;
using mr::ui::test::demoSnapshot;

namespace {

UiServices noHistory()
{
    UiServices services;
    services.openReader = [](const std::string&) -> mr::Result<std::unique_ptr<mr::RunReader>> {
        return mr::Status::error(mr::ErrorKind::Io, "history.db: no such file");
    };
    return services;
}

QPushButton* button(const QWidget& page, const QString& text)
{
    for (QPushButton* candidate : page.findChildren<QPushButton*>()) {
        if (candidate->text() == text)
            return candidate;
    }
    return nullptr;
}

bool shows(const QWidget& page, const QString& text)
{
    for (const QLabel* label : page.findChildren<QLabel*>()) {
        if (label->isVisibleTo(&page) && label->text().contains(text))
            return true;
    }
    return false;
}

} // namespace

class TestLivePage : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void withoutARunThePageOffersToStartOne()
    {
        LivePage page(noHistory());
        QSignalSpy wanted(&page, &LivePage::newRunRequested);

        QVERIFY(shows(page, QStringLiteral("No run is active.")));
        button(page, QStringLiteral("New run"))->click();

        QCOMPARE(wanted.count(), 1);
    }

    void aHistoryThatCannotBeReadIsSaid()
    {
        LivePage page(noHistory());

        page.showRun(1);

        QTRY_VERIFY(shows(page, QStringLiteral("history.db: no such file")));
    }

    void theHeadSaysStateProgressAndSpeed()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));

        for (const char* text : {"Running", "Notes, second try", "412 / 600", "tokens/s", "(at ",
                 "Simulated link", "(step 360)"})
            QVERIFY2(shows(view, QString::fromUtf8(text)), text);
    }

    void aRunThatMadeTheModelWorseSaysSoInItsHead()
    {
        auto run = std::make_shared<mr::ui::RunSnapshot>(*demoSnapshot(600, 600, RunStatus::Done));
        run->run.firstEval = 1.8344;
        run->run.lastEval = 2403.4;
        run->run.lastEvalStep = 600;
        run->run.bestEval = 25.1;
        run->run.bestEvalStep = 60;
        RunView view;

        view.setSnapshot(run);

        for (const char* text : {"Done, worse", "2,403 against 1.83 at step 0",
                 "The learning rate is probably too high.", "25.1000 (step 60)"})
            QVERIFY2(shows(view, QString::fromUtf8(text)), text);
        run = std::make_shared<mr::ui::RunSnapshot>(*run);
        run->run.lastEval = 1.2;
        view.setSnapshot(run);
        QVERIFY(shows(view, QStringLiteral("Done")));
        QVERIFY(!shows(view, QStringLiteral("worse")) && !shows(view, QStringLiteral("Worse")));
    }

    void stopIsAskedOnceAndThenSaysSo()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));
        QSignalSpy stop(&view, &RunView::stopRequested);
        QPushButton* stopButton = button(view, QStringLiteral("Stop and save"));

        stopButton->click();
        stopButton->click();

        QCOMPARE(stop.count(), 1);
        QVERIFY(!stopButton->isEnabled());
        QVERIFY(shows(view, QStringLiteral("Stopping")));
    }

    void aRunThatIsResumedCanBeStoppedAgain()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(180, 600));
        QPushButton* stopButton = button(view, QStringLiteral("Stop and save"));
        stopButton->click();
        QVERIFY(!stopButton->isEnabled());
        auto stopped = std::make_shared<mr::ui::RunSnapshot>(*demoSnapshot(180, 600));
        stopped->run.status = RunStatus::Stopped;
        stopped->generation = 2;
        view.setSnapshot(stopped);

        view.setSnapshot(demoSnapshot(190, 600)); // resumed; nobody saw it start

        QCOMPARE(stopButton->text(), QStringLiteral("Stop and save"));
        QVERIFY(stopButton->isVisibleTo(&view));
        QVERIFY(stopButton->isEnabled());
        QVERIFY(shows(view, QStringLiteral("Running")));
        QVERIFY(!shows(view, QStringLiteral("Stopping")));
    }

    void aStoppedRunOffersResumeWithItsFolder()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(180, 600, RunStatus::Stopped));
        QSignalSpy resume(&view, &RunView::resumeRequested);

        button(view, QStringLiteral("Resume"))->click();

        QCOMPARE(resume.count(), 1);
        QCOMPARE(resume[0][0].toString().toStdString(), view.snapshot()->run.dir);
    }

    void growingSnapshotsGiveTheSameChartAsOneWhole()
    {
        RunView grown;
        for (const std::int64_t count : {1, 17, 200, 412})
            grown.setSnapshot(demoSnapshot(count, 600));
        RunView whole;
        whole.setSnapshot(demoSnapshot(412, 600));

        QCOMPARE(grown.lossChart()->csv(), whole.lossChart()->csv());
    }

    void smoothingAnewUsesAllPoints()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(100, 600));
        const QByteArray before = view.lossChart()->csv();
        auto* window = view.findChild<QSpinBox*>();

        window->setValue(1); // no smoothing: the average is the loss

        const QByteArray after = view.lossChart()->csv();
        QVERIFY(before != after);
        const QList<QByteArray> line = after.split('\n')[60].split(',');
        QCOMPARE(line[1], line[2]);
    }

    void zoomingNarrowsAllChartsAndTheLedger()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));

        emit view.stallStrip()->rangePicked(100.5, 150.5);

        QCOMPARE(view.ledger()->totals().steps, std::int64_t{50});
        QVERIFY(button(view, QStringLiteral("Show all steps"))->isVisibleTo(&view));
        button(view, QStringLiteral("Show all steps"))->click();
        QCOMPARE(view.ledger()->totals().steps, std::int64_t{412});
    }

    void aZoomedChartStaysWhereItIsWhenStepsArrive()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(300, 600));
        emit view.lossChart()->rangePicked(100.5, 150.5);

        view.setSnapshot(demoSnapshot(320, 600));

        QCOMPARE(view.ledger()->totals().steps, std::int64_t{50});
    }

    void theMachineIsShownOverTheTimeOfTheRun()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));

        QCOMPARE(view.machine()->shownCharts().size(), std::size_t{6});
        QVERIFY(shows(view, QStringLiteral("Energy of the device")));
        view.setSnapshot(demoSnapshot(0, 600, RunStatus::Starting));
        QVERIFY(view.machine()->isHidden());
    }

    void chartsOfTheMachineAreZoomedWithTheOthers()
    {
        RunView view;
        const auto snapshot = demoSnapshot(412, 600);
        view.setSnapshot(snapshot);
        const auto seconds = [&](std::size_t row) {
            return static_cast<double>(snapshot->steps[row].timeMs) / 1000.0;
        };

        emit view.machine()->rangePicked(seconds(99) + 0.1, seconds(149) - 0.1);

        QCOMPARE(view.ledger()->totals().steps, std::int64_t{50}); // steps 101 to 150
        emit view.machine()->allPicked();
        QCOMPARE(view.ledger()->totals().steps, std::int64_t{412});
    }

    void theCursorIsAtOneMomentInAllCharts()
    {
        RunView view;
        const auto snapshot = demoSnapshot(412, 600);
        view.setSnapshot(snapshot);
        mr::ui::LineChart* power = view.machine()->shownCharts()[3];

        emit view.lossChart()->cursorMoved(200.0);
        const QString fromStep = power->readout();
        emit power->cursorMoved(static_cast<double>(snapshot->steps[249].timeMs) / 1000.0 - 0.1);

        const double at = static_cast<double>(snapshot->steps[199].timeMs) / 1000.0;
        QVERIFY2(fromStep.startsWith(mr::ui::durationText(at)), qPrintable(fromStep));
        QVERIFY(view.lossChart()->readout().startsWith(QStringLiteral("step 250")));
    }

    void everyControlHasANameForScreenReaders()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));

        for (QWidget* widget : view.findChildren<QWidget*>()) {
            if (widget->focusPolicy() == Qt::NoFocus || widget->objectName().startsWith(u"qt_"))
                continue;
            if (qobject_cast<QLabel*>(widget) != nullptr) // its text is its name
                continue;
            QAccessibleInterface* reader = QAccessible::queryAccessibleInterface(widget);
            QVERIFY2(reader != nullptr && !reader->text(QAccessible::Name).isEmpty(),
                widget->metaObject()->className());
        }
    }

    void chartsAreChartsForScreenReaders()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));

        for (QWidget* chart :
            std::initializer_list<QWidget*>{view.lossChart(), view.stallStrip()}) {
            QAccessibleInterface* reader = QAccessible::queryAccessibleInterface(chart);
            QCOMPARE(reader->role(), QAccessible::Chart);
            QVERIFY(reader->text(QAccessible::Description).contains(QStringLiteral("412")));
        }
    }

    void smallRatesHaveASmallUnit()
    {
        auto snapshot = std::make_shared<mr::ui::RunSnapshot>(*demoSnapshot(0, 600));
        std::vector<mr::StepRow> rows = mr::ui::test::demoSteps(50);
        for (mr::StepRow& row : rows) {
            row.wallUs = 1'000'000;
            row.d2hBytes = 6947;
        }
        snapshot->steps.append(rows);
        RunView view;
        view.setSnapshot(snapshot);

        emit view.lossChart()->cursorMoved(20.0);

        const auto* traffic = view.findChild<mr::ui::ChartPanel*>("traffic");
        QStringList texts;
        for (const auto* label : traffic->findChildren<QLabel*>())
            texts << label->text() << label->toolTip();
        const QString all = texts.join(' ').replace(QChar(0xa0), ' ');
        QVERIFY2(all.contains("6.95 KB/s"), qPrintable(all));
    }

    void everyChartCanBeReadAsATable()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));
        const auto* loss = qobject_cast<mr::ui::ChartPanel*>(view.lossChart()->parentWidget());
        auto* menu = loss->findChild<QToolButton*>();
        QTimer::singleShot(0, &view, [] {
            auto* popup = qobject_cast<QMenu*>(QApplication::activePopupWidget());
            QTest::keyClick(popup, Qt::Key_Down);
            QTest::keyClick(popup, Qt::Key_Return);
        });

        menu->click();

        const auto* window = view.findChild<QDialog*>();
        QVERIFY(window != nullptr);
        const auto* table = window->findChild<QTableView*>();
        QVERIFY(window->windowTitle().contains("Loss"));
        QVERIFY(!table->accessibleName().isEmpty());
        QCOMPARE(table->model()->rowCount(), int(view.lossChart()->csv().count('\n')) - 1);
        QCOMPARE(table->model()->headerData(0, Qt::Horizontal).toString(), QString("step"));
    }

    void aPictureOfAChartIsSharpAndKeepsTheFocus()
    {
        RunView view;
        view.resize(1000, 900);
        view.show();
        QVERIFY(QTest::qWaitForWindowActive(&view));
        view.setSnapshot(demoSnapshot(412, 600));
        auto* loss = qobject_cast<mr::ui::ChartPanel*>(view.lossChart()->parentWidget());
        auto* menu = loss->findChild<QToolButton*>();
        menu->setFocus();

        const QPixmap picture = loss->picture();

        QCOMPARE(picture.size(), loss->size() * 2);
        QVERIFY(menu->hasFocus());
        QVERIFY(menu->isVisible());
    }

    void theStepsCanBeReadAsATable()
    {
        RunView view;
        view.setSnapshot(demoSnapshot(412, 600));

        button(view, QStringLiteral("As a table…"))->click();

        const auto* table = view.findChild<QDialog*>()->findChild<QTableView*>();
        QCOMPARE(table->model()->rowCount(), 412);
        view.setSnapshot(demoSnapshot(420, 600));
        QCOMPARE(table->model()->rowCount(), 420);
    }

    void aRunWithoutStepsIsShownToo()
    {
        RunView view;
        view.resize(1000, 600);

        view.setSnapshot(demoSnapshot(0, 600, RunStatus::Starting));
        view.grab();

        QVERIFY(shows(view, QStringLiteral("Starting")));
        QCOMPARE(view.ledger()->totals().steps, std::int64_t{0});
    }

    void aLossThatIsNotANumberIsDrawnAsAGap()
    {
        auto snapshot = std::make_shared<mr::ui::RunSnapshot>(*demoSnapshot(0, 600));
        std::vector<mr::StepRow> rows = mr::ui::test::demoSteps(50);
        rows[30].loss = std::numeric_limits<double>::quiet_NaN();
        snapshot->steps.append(rows);
        RunView view;

        view.setSnapshot(snapshot);

        QVERIFY(view.lossChart()->csv().contains("\n31,nan,nan,\n"));
    }
};

MR_TEST_WITH_WINDOWS(TestLivePage)

} // namespace mr::test::tst_live_page

#include "tst_live_page.moc"
