#include "core/store/store_rig.h"
#include "core/store/trace_reader.h"
#include "support/test_room.h"

#include <millrace/step_timeline.h>

#include <QtTest>

namespace mr::test::tst_trace_reader {

namespace {

std::string slice(const char* name, int thread, double ts, double dur, const char* args)
{
    return QStringLiteral(R"({"ph":"X","name":"%1","cat":"step","pid":1,"tid":%2,"ts":%3,)"
                          R"("dur":%4,"args":{"step":4,%5}})")
        .arg(QLatin1String(name))
        .arg(thread)
        .arg(ts, 0, 'f', 3)
        .arg(dur, 0, 'f', 3)
        .arg(QLatin1String(args))
        .toStdString();
}

std::string traceOf(const std::vector<std::string>& slices)
{
    std::string text = R"({"displayTimeUnit":"ns","traceEvents":[)"
                       R"({"ph":"M","name":"thread_name","pid":1,"tid":100,"args":{"name":"x"}})";
    for (const std::string& one : slices)
        text += ",\n" + one;
    return text + "]}";
}

constexpr const char* kGroup3 = R"("group":3,"micro":-1,"bytes":4096)";
constexpr const char* kWaitOf3 = R"("group":3,"micro":-1,"bytes":0)";
constexpr const char* kWaitOf3In = R"("group":3,"micro":-1,"bytes":0,"lane":"CopyIn")";

constexpr const char* kWaitOf3Disk = R"("group":3,"micro":-1,"bytes":0,"lane":"Disk")";

} // namespace

class TestTraceReader : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void tasksComeBackWithLaneTimesAndBytes()
    {
        const auto read = timelineFromTrace(traceOf({slice("FetchWeights", 201, 1.5, 2.25, kGroup3),
            slice("Forward", 100, 0.0, 1.001, R"("group":2,"micro":1,"bytes":0)")}));
        QVERIFY2(read.ok(), read.status().message().c_str());
        const StepTimeline timeline = Result<StepTimeline>(read).value();
        QCOMPARE(timeline.spans.size(), std::size_t{2});
        QCOMPARE(timeline.spans[0].task, std::string("Forward")); // by begin
        QCOMPARE(timeline.spans[0].endNs, 1001);
        QCOMPARE(timeline.spans[0].micro, 1);
        QVERIFY(timeline.spans[1].lane == TimelineLane::CopyIn);
        QCOMPARE(timeline.spans[1].beginNs, 1500);
        QCOMPARE(timeline.spans[1].endNs, 3750);
        QCOMPARE(timeline.spans[1].bytes, 4096);
        QCOMPARE(timeline.spans[1].group, 3);
        QCOMPARE(timeline.endNs, 3750);
    }

    void aWaitKnowsItsCauseAndWhatItWaitedFor()
    {
        const auto read = timelineFromTrace(traceOf({slice("FetchWeights", 200, 0.0, 5.0, kGroup3),
            slice("FetchWeights", 200, 5.0, 5.0, kGroup3), // another tile of the same layer
            slice("waits for FetchWeights", 600, 2.0, 8.0, kWaitOf3In)}));
        const StepTimeline timeline = Result<StepTimeline>(read).value();
        QVERIFY(timeline.spans[1].kind == TimelineKind::Wait);
        QVERIFY(timeline.spans[1].cause == StallCause::H2d);
        QCOMPARE(timeline.spans[1].source, 2); // the one that ended with the wait
    }

    // Files of the first program have no lane beside a wait.
    void anOlderFileTellsTheLaneByTheTaskThatRan()
    {
        const auto read = timelineFromTrace(traceOf({slice("UpdateOnHost", 400, 0.0, 9.0, kGroup3),
            slice("waits for UpdateOnHost", 600, 2.0, 7.0, kWaitOf3)}));
        const StepTimeline timeline = Result<StepTimeline>(read).value();
        QVERIFY(timeline.spans[1].lane == TimelineLane::Host);
        QVERIFY(timeline.spans[1].cause == StallCause::HostUpdate);
        QCOMPARE(timeline.spans[1].source, 0);
    }

    // Files of programs with one lane for the disk.
    void anOlderFilesDiskLaneIsTwo()
    {
        const auto read = timelineFromTrace(traceOf({slice("ReadFromDisk", 500, 0.0, 9.0, kGroup3),
            slice("WriteToDisk", 501, 1.0, 8.0, kGroup3),
            slice("waits for WriteToDisk", 600, 2.0, 7.0, kWaitOf3Disk),
            slice("waits for ReadFromDisk", 600, 3.0, 6.0, kWaitOf3Disk)}));
        const StepTimeline timeline = Result<StepTimeline>(read).value();
        QVERIFY(timeline.spans[0].lane == TimelineLane::DiskIn);
        QVERIFY(timeline.spans[1].lane == TimelineLane::DiskOut);
        QVERIFY(timeline.spans[2].lane == TimelineLane::DiskOut);
        QCOMPARE(timeline.spans[2].source, 1);
        QVERIFY(timeline.spans[3].lane == TimelineLane::DiskIn);
        QCOMPARE(timeline.spans[3].source, 0);
        QVERIFY(timeline.spans[3].cause == StallCause::Disk);
    }

    void theLanesOfTheDiskAreReadByTheirNames()
    {
        const auto read = timelineFromTrace(traceOf({slice("WriteToDisk", 800, 0.0, 9.0, kGroup3),
            slice("waits for Something", 600, 2.0, 7.0,
                R"("group":3,"micro":-1,"bytes":0,"lane":"DiskOut")"),
            slice("waits for Something", 600, 3.0, 6.0,
                R"("group":3,"micro":-1,"bytes":0,"lane":"DiskIn")")}));
        const StepTimeline timeline = Result<StepTimeline>(read).value();
        QVERIFY(timeline.spans[0].lane == TimelineLane::DiskOut);
        QVERIFY(timeline.spans[1].lane == TimelineLane::DiskOut);
        QVERIFY(timeline.spans[2].lane == TimelineLane::DiskIn);
    }

    void aWaitForAnEarlierStepsWorkHasNoSource()
    {
        const auto read =
            timelineFromTrace(traceOf({slice("waits for UpdateOnHost", 600, 0.0, 3.0,
                                           R"("group":-1,"micro":-1,"bytes":0,"lane":"Host")"),
                slice("not explained", 600, 3.0, 1.0, R"("group":-1,"micro":-1,"bytes":0)"),
                slice("waits for data", 700, 4.0, 1.0, R"("group":-1,"micro":-1,"bytes":0)"),
                slice("checkpoint", 700, 5.0, 1.0, R"("group":-1,"micro":-1,"bytes":0)")}));
        const StepTimeline timeline = Result<StepTimeline>(read).value();
        QVERIFY(timeline.spans[0].cause == StallCause::HostUpdate);
        QCOMPARE(timeline.spans[0].source, -1);
        QVERIFY(timeline.spans[1].cause == StallCause::Other);
        QVERIFY(timeline.spans[2].cause == StallCause::Data);
        QVERIFY(timeline.spans[2].kind == TimelineKind::Wait);
        QVERIFY(timeline.spans[3].kind == TimelineKind::Work);
    }

    void whatIsNoTraceIsRefused()
    {
        for (const char* text : {"", "{", "[]", R"({"traceEvents":3})"})
            QVERIFY(timelineFromTrace(text).status().kind() == ErrorKind::DataCorrupt);
        const auto odd = timelineFromTrace(
            traceOf({R"({"ph":"X"})", R"({"ph":"X","tid":99999,"args":{}})", "7"}));
        QVERIFY(odd.ok());
        QVERIFY(Result<StepTimeline>(odd).value().spans.empty());
    }

    void keptStepsAreListedAndRead()
    {
        StoreRig rig;
        NewRun run = StoreRig::newRun("u1");
        run.dir = rig.folder.path().toStdString();
        const std::int64_t id = rig.store->beginRun(run).value();
        QFile file(rig.folder.filePath(QStringLiteral("trace-50.json")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray::fromStdString(traceOf({slice("Forward", 100, 0.0, 1.0, kGroup3)})));
        file.close();
        // The folder has moved since: the path in the row is no longer true.
        QVERIFY(rig.store->addTrace(id, {100, "/gone/trace-100.json", 9, "slowest so far"}).ok());
        QVERIFY(rig.store->addTrace(id, {50, "/gone/trace-50.json", 9, "every 50th step"}).ok());

        const auto reader = rig.openReader();
        const std::vector<TraceInfo> traces = reader->traces(id).value();
        QCOMPARE(traces.size(), std::size_t{2});
        QCOMPARE(traces[0].step, 50);
        QCOMPARE(traces[1].why, std::string("slowest so far"));
        const StepTimeline timeline = reader->timeline(id, 50).value();
        QCOMPARE(timeline.step, 50);
        QCOMPARE(timeline.why, std::string("every 50th step"));
        QCOMPARE(timeline.spans.size(), std::size_t{1});
        QVERIFY(reader->timeline(id, 100).status().kind() == ErrorKind::Io);
        QVERIFY(reader->timeline(id, 51).status().kind() == ErrorKind::InvalidArgument);
        QVERIFY(reader->timeline(id + 1, 50).status().kind() == ErrorKind::InvalidArgument);
    }
};

MR_TEST_WITH_APP(TestTraceReader)

} // namespace mr::test::tst_trace_reader

#include "tst_trace_reader.moc"
