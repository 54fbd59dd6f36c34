// RunFeed brings rows of the history database to the GUI thread, once each, of the right run.

#include "bridge/run_feed.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"
#include "ui/support/demo_run.h"

#include <millrace/planner.h>

#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QThread>

namespace mr::test::tst_run_feed {

using mr::ui::RunFeed;
using mr::ui::RunRowsPtr;
using mr::ui::RunSnapshotPtr;
using mr::ui::UiServices;
using mr::ui::test::fillDemoRun;

class TestRunFeed : public QObject
{
    Q_OBJECT

private slots:

    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_services.database = m_folder->filePath(QStringLiteral("history.db")).toStdString();
        m_services.openReader = [](const std::string& path) { return RunReader::open(path); };
        m_services.planFromJson = [](const std::string& json) {
            return mr::planReportFromJson(json);
        };
        auto store = RunStore::open(m_services.database);
        QVERIFY2(store.ok(), store.status().message().c_str());
        m_store = std::move(store).value();
    }

    void cleanup()
    {
        m_store.reset();
        m_folder.reset();
    }

    void anEndedRunArrivesWhole()
    {
        const qint64 id = fill("old", 600, RunStatus::Done);
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);

        feed.watch(id);

        QTRY_COMPARE(arrived.count(), 1);
        const auto snapshot = arrived[0][0].value<RunSnapshotPtr>();
        QCOMPARE(snapshot->run.status, RunStatus::Done);
        QCOMPARE(snapshot->steps.size(), std::size_t{600});
        QCOMPARE(snapshot->evalLoss.size(), mr::ui::test::demoEvals(600).size());
        QCOMPARE(snapshot->events.size(), mr::ui::test::demoEvents(600).size());
        QCOMPARE(snapshot->checkpoints.size(), std::size_t{2});
        const std::int64_t seconds = snapshot->steps.back().timeMs / 1000;
        QVERIFY(snapshot->machine != nullptr);
        QCOMPARE(snapshot->machine->endMs, (seconds + 1) * 1000);
        for (const mr::CounterSeries& series : snapshot->machine->series)
            QCOMPARE(std::ssize(series.entries), seconds + 1);
        QVERIFY(snapshot->run.energyJ > 0.0);
        QVERIFY(snapshot->plan != nullptr);
        QCOMPARE(snapshot->plan->tiers.size(), mr::ui::test::demoPlan().tiers.size());
    }

    void newStepsOfALiveRunAreAddedToTheSameCurve()
    {
        const qint64 id = fill("live", 100, RunStatus::Running);
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);
        feed.watch(id);
        QTRY_COMPARE(arrived.count(), 1);
        const auto before = arrived[0][0].value<RunSnapshotPtr>();

        append(id, 100, 130);
        feed.notify(id);

        QTRY_VERIFY(last(arrived)->steps.size() == 130);
        QCOMPARE(last(arrived)->generation, before->generation);
        QCOMPARE(before->steps.size(), std::size_t{100}); // a snapshot handed out does not change
    }

    void anExportOfAnEndedRunArrivesWhenItIsAskedFor()
    {
        const qint64 id = fill("done", 30, RunStatus::Done);
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);
        feed.watch(id);
        QTRY_COMPARE(arrived.count(), 1);
        QVERIFY(last(arrived)->exports.empty());
        mr::ExportRow row;
        row.form = "gguf";
        row.path = "/out/a.gguf";

        QVERIFY(m_store->edits().addExport(id, row).ok());
        feed.refreshRun();

        QTRY_COMPARE(last(arrived)->exports.size(), std::size_t{1});
        QCOMPARE(last(arrived)->exports[0], row);
    }

    void samplesOfALiveRunArriveBetweenItsSteps()
    {
        const qint64 id = fill("live", 100, RunStatus::Running);
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);
        feed.watch(id);
        QTRY_COMPARE(arrived.count(), 1);
        const std::int64_t before = last(arrived)->machine->endMs;
        mr::StoreBatch batch;
        mr::MachineSample sample;
        sample.timeMs = before + 4000;
        sample[mr::MachineMetric::HostCpu] = 12.0;
        batch.samples.push_back(sample);

        QVERIFY(m_store->append(id, batch).ok());
        feed.notify(id);

        QTRY_COMPARE(last(arrived)->machine->endMs, before + 5000);
        QCOMPARE((*last(arrived)->machine)[mr::MachineMetric::HostCpu].entries.back().mean, 12.0F);
    }

    void aResumedRunThatRewroteItsStepsStartsOver()
    {
        const qint64 id = fill("resumed", 100, RunStatus::Stopped);
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);
        feed.watch(id);
        QTRY_COMPARE(arrived.count(), 1);
        const quint64 generation = last(arrived)->generation;

        QVERIFY(m_store->beginSegment(id, 60).ok());
        append(id, 60, 110, 7); // other numbers than the first time
        feed.notify(id);

        QTRY_VERIFY(last(arrived)->steps.size() == 110);
        QVERIFY(last(arrived)->generation != generation);
    }

    void resultsOfAnotherRunAreDropped()
    {
        const qint64 first = fill("first", 400, RunStatus::Done);
        const qint64 second = fill("second", 50, RunStatus::Done);
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);

        feed.watch(first);
        feed.watch(second);

        QTRY_VERIFY(arrived.count() > 0);
        for (const QList<QVariant>& signal : arrived)
            QCOMPARE(qint64{signal[0].value<RunSnapshotPtr>()->run.id}, second);
    }

    void allRunsArriveNewestFirst()
    {
        fill("older", 10, RunStatus::Done);
        fill("newer", 10, RunStatus::Stopped);
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::runsReady);

        feed.refreshRuns();

        QTRY_COMPARE(arrived.count(), 1);
        const auto runs = arrived[0][0].value<RunRowsPtr>();
        QCOMPARE(runs->size(), std::size_t{2});
        QCOMPARE(runs->front().name, std::string("newer"));
    }

    void sqlStaysOffTheGuiThread()
    {
        const qint64 id = fill("any", 10, RunStatus::Done);
        std::atomic<bool> onGuiThread{false};
        UiServices services = m_services;
        const QThread* gui = QThread::currentThread();
        services.openReader = [&onGuiThread, gui](const std::string& path) {
            onGuiThread = QThread::currentThread() == gui;
            return RunReader::open(path);
        };
        RunFeed feed(services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);

        feed.watch(id);

        QTRY_COMPARE(arrived.count(), 1);
        QVERIFY(!onGuiThread);
    }

    void aKeptStepIsReadWhenItIsAskedFor()
    {
        const qint64 id = fill("kept", 100, RunStatus::Done);
        const QString path = m_folder->filePath(QStringLiteral("trace-50.json"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(R"({"traceEvents":[{"ph":"X","name":"Forward","tid":100,"ts":0.000,)"
                   R"("dur":1.500,"args":{"step":50,"group":1,"micro":0,"bytes":0}}]})");
        file.close();
        QVERIFY(m_store->addTrace(id, {50, path.toStdString(), 9, "every 50th step"}).ok());
        RunFeed feed(m_services);
        QSignalSpy arrived(&feed, &RunFeed::snapshotReady);
        QSignalSpy timelines(&feed, &RunFeed::timelineReady);
        QSignalSpy failures(&feed, &RunFeed::timelineFailed);
        feed.watch(id);
        QTRY_COMPARE(arrived.count(), 1);
        QCOMPARE(last(arrived)->traces.size(), std::size_t{1});

        feed.readTimeline(50);
        feed.readTimeline(60); // was not kept

        QTRY_COMPARE(timelines.count(), 1);
        QTRY_COMPARE(failures.count(), 1);
        const auto timeline = timelines[0][0].value<mr::ui::TimelinePtr>();
        QCOMPARE(timeline->step, std::int64_t{50});
        QCOMPARE(timeline->spans.at(0).endNs, std::int64_t{1500});
        QCOMPARE(failures[0][0].toLongLong(), 60LL);
        QVERIFY(!failures[0][1].toString().isEmpty());
    }

    void aRunThatDoesNotExistIsSaidOnce()
    {
        RunFeed feed(m_services);
        QSignalSpy failed(&feed, &RunFeed::failed);

        feed.watch(4711);
        QTRY_COMPARE(failed.count(), 1);
        feed.notify(4711);
        QSignalSpy runs(&feed, &RunFeed::runsReady);
        feed.refreshRuns(); // behind the notify: when it is answered, so is the notify
        QTRY_COMPARE(runs.count(), 1);

        QCOMPARE(failed.count(), 1);
        QVERIFY(!failed[0][0].toString().isEmpty());
    }

private:
    qint64 fill(const std::string& name, std::int64_t count, RunStatus status)
    {
        const auto id = fillDemoRun(*m_store, name, count, 600, status);
        if (!id.ok())
            qFatal("%s", id.status().message().c_str());
        auto copy = id;
        return copy.value();
    }

    void append(qint64 id, std::int64_t after, std::int64_t count, std::uint64_t seed = 1)
    {
        const std::vector<mr::StepRow> rows = mr::ui::test::demoSteps(count, seed);
        mr::StoreBatch batch;
        batch.steps.assign(rows.begin() + after, rows.end());
        QVERIFY(m_store->append(id, batch).ok());
    }

    static RunSnapshotPtr last(const QSignalSpy& spy)
    {
        return spy.last()[0].value<RunSnapshotPtr>();
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<RunStore> m_store;
    UiServices m_services;
};

MR_TEST_WITH_APP(TestRunFeed)

} // namespace mr::test::tst_run_feed

#include "tst_run_feed.moc"
