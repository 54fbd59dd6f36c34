// The GUI thread is never busy for long: a run of ten thousand steps and more to come is in the
// history, pages are switched and charts zoomed, and no turn of the event loop takes 50 ms of the
// thread's processor time on a machine with nothing else to do (MR_QUIET=1). Beside other work
// caches are shared, and processor time doubles: then a turn may take three times as long, which
// still finds a query or a layout of everything on this thread. The first showing of a page is
// reported and not judged.

#include "charts/line_chart.h"
#include "language.h"
#include "main_window.h"
#include "pages/compare_page.h"
#include "pages/history_page.h"
#include "pages/live_page.h"
#include "pages/run_view.h"
#include "support/test_room.h"
#include "theme.h"
#include "ui/support/demo_rows.h"
#include "ui/support/demo_run.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"

#include <millrace/planner.h>

#include <QElapsedTimer>
#include <QEventLoop>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>

#include <ctime>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace mr::test::tst_responsive {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

constexpr std::int64_t kSteps = 10'000;
constexpr std::int64_t kMoreSteps = 400;
constexpr std::int64_t kBatch = 20;
constexpr double kMostMs = 50.0;
constexpr double kMostBesideOthers = 3.0; // times as much
constexpr int kTurns = 12;                // that follow each thing that is done
constexpr int kMostWaitMs = 30'000;

[[maybe_unused]] double mostMs()
{
    return qEnvironmentVariableIsSet("MR_QUIET") ? kMostMs : kMostBesideOthers * kMostMs;
}

double threadMs()
{
    timespec now{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// Runs the event loop, turn by turn, and keeps the longest.
class Watch
{
public:
    // Runs `what` within the first turn.
    void act(const QString& name, const std::function<void()>& what)
    {
        m_name = name;
        turn(what);
        for (int i = 0; i < kTurns; ++i)
            turn([] {});
    }

    bool until(const QString& name, const std::function<bool()>& holds)
    {
        m_name = name;
        QElapsedTimer waited;
        waited.start();
        while (!holds() && waited.elapsed() < kMostWaitMs)
            turn([] {});
        return holds();
    }

    double longestMs() const { return m_longest; }
    QString longest() const
    {
        return QStringLiteral("%1 ms of processor time: %2").arg(m_longest, 0, 'f', 1).arg(m_worst);
    }

private:
    void turn(const std::function<void()>& what)
    {
        const double begin = threadMs();
        what();
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        QCoreApplication::processEvents(QEventLoop::AllEvents);
        const double took = threadMs() - begin;
        if (took > m_longest) {
            m_longest = took;
            m_worst = m_name;
        }
        if (took < 0.5) // nothing was there to be done
            QThread::msleep(1);
    }

    double m_longest = 0.0;
    QString m_name;
    QString m_worst;
};

// Another thread writes steps, as an engine does, and tells the window.
class Engine
{
public:
    Engine(RunStore& store, qint64 run, MainWindow& window)
        : m_thread([&store, run, &window] { write(store, run, window); })
    {
    }

private:
    static void write(RunStore& store, qint64 run, MainWindow& window)
    {
        const std::vector<StepRow> rows = demoSteps(kSteps + kMoreSteps);
        for (std::int64_t done = kSteps; done < kSteps + kMoreSteps; done += kBatch) {
            StoreBatch batch;
            batch.steps.assign(rows.begin() + done, rows.begin() + done + kBatch);
            if (!store.append(run, batch).ok())
                qFatal("the history cannot be written");
            QMetaObject::invokeMethod(&window, [&window, run] { window.live()->notify(run); });
        }
    }

    std::jthread m_thread;
};

} // namespace

class TestResponsive : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        keepSettingsIn(m_folder.path());
        m_services = fakeServices(std::make_shared<FakeRun>());
        m_services.database = m_folder.filePath("history.db").toStdString();
        m_services.openReader = [](const std::string& path) { return RunReader::open(path); };
        m_services.planFromJson = [](const std::string& json) { return planReportFromJson(json); };
        m_store = std::move(RunStore::open(m_services.database)).value();
        m_old = fillDemoRun(*m_store, "old", kSteps, kSteps, RunStatus::Done).value();
        m_run = fillDemoRun(*m_store, "live", kSteps, 2 * kSteps, RunStatus::Running).value();
    }

    void noTurnOfTheEventLoopTakesLong()
    {
        Theme theme;
        Language language;
        MainWindow window(m_services, theme, language);
        window.resize(1280, 800);
        window.show();
        QCoreApplication::processEvents(); // fonts and styles are loaded once
        Watch first;
        Watch watch;

        showOnce(window, first);
        useTheWindow(window, watch);

        qInfo("the longest turn: %s; when each page is shown for the first time: %s",
            qPrintable(watch.longest()), qPrintable(first.longest()));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(NDEBUG)
        QVERIFY2(watch.longestMs() < mostMs(), qPrintable(watch.longest()));
#endif
    }

private:
    // All widgets of a page are laid out and painted at once, which is not judged here.
    void showOnce(MainWindow& window, Watch& watch)
    {
        watch.act("the Live page", [&] {
            window.live()->showRun(m_run);
            window.showPage(MainWindow::Page::Live);
        });
        const RunView* live = window.live()->view();
        QVERIFY(watch.until("ten thousand steps arrive", [&] { return steps(live) >= kSteps; }));
        open(window, watch, m_run);
        watch.act("a comparison", [&] {
            window.compare()->compare(m_old, m_run);
            window.showPage(MainWindow::Page::Compare);
        });
        switchPages(window, watch);
    }

    void useTheWindow(MainWindow& window, Watch& watch)
    {
        window.showPage(MainWindow::Page::Live);
        Engine engine(*m_store, m_run, window);
        RunView* live = window.live()->view();
        zoom(live, watch, "the live charts");
        QVERIFY(
            watch.until("more steps arrive", [&] { return steps(live) == kSteps + kMoreSteps; }));
        open(window, watch, m_old);
        zoom(window.history()->view(), watch, "the old charts");
        for (int round = 0; round < 3; ++round)
            switchPages(window, watch);
    }

    static void open(MainWindow& window, Watch& watch, qint64 run)
    {
        watch.act("a run of the history", [&] {
            window.showPage(MainWindow::Page::History);
            window.history()->openRun(run);
        });
        const RunView* view = window.history()->view();
        QVERIFY(watch.until("an old run arrives",
            [&] { return steps(view) >= kSteps && view->snapshot()->run.id == run; }));
    }

    static void switchPages(MainWindow& window, Watch& watch)
    {
        for (const auto page :
            {MainWindow::Page::Home, MainWindow::Page::NewRun, MainWindow::Page::Live,
                MainWindow::Page::History, MainWindow::Page::Compare, MainWindow::Page::Try})
            watch.act(QStringLiteral("page %1").arg(static_cast<int>(page)),
                [&] { window.showPage(page); });
    }

    static std::int64_t steps(const RunView* view)
    {
        return view->snapshot() ? static_cast<std::int64_t>(view->snapshot()->steps.size()) : 0;
    }

    static void zoom(RunView* view, Watch& watch, const QString& what)
    {
        LineChart* chart = view->lossChart();
        for (double half = 4000.0; half > 20.0; half /= 2.0)
            watch.act(QStringLiteral("zooming ") + what,
                [&] { emit chart->rangePicked(5000.0 - half, 5000.0 + half); });
        watch.act(QStringLiteral("all of ") + what, [&] { emit chart->allPicked(); });
        for (int i = 0; i < 20; ++i)
            watch.act(QStringLiteral("the cursor over ") + what,
                [&] { emit chart->cursorMoved(450.0 * i); });
        watch.act(QStringLiteral("the logarithm of ") + what,
            [&] { chart->setLogScale(!chart->logScale()); });
    }

    QTemporaryDir m_folder;
    UiServices m_services;
    std::unique_ptr<RunStore> m_store;
    qint64 m_old = 0;
    qint64 m_run = 0;
};

MR_TEST_WITH_WINDOWS(TestResponsive)

} // namespace mr::test::tst_responsive

#include "tst_responsive.moc"
