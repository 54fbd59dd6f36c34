#include "core/store/trace_reader.h"
#include "core/telemetry/trace_export.h"
#include "support/test_room.h"

#include <QtTest>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace mr::test::tst_trace_export {

using Json = nlohmann::json;

namespace {

TraceEvent span(SpanKind kind, Lane lane, std::int64_t begin, std::int64_t end,
    TaskKind task = TaskKind::Forward)
{
    TraceEvent e;
    e.kind = kind;
    e.lane = lane;
    e.task = task;
    e.step = 4;
    e.beginNs = begin;
    e.endNs = end;
    return e;
}

std::vector<Json> eventsOf(const std::string& text, const std::string& phase)
{
    std::vector<Json> found;
    const Json trace = Json::parse(text);
    for (const Json& e : trace["traceEvents"]) {
        if (e["ph"] == phase)
            found.push_back(e);
    }
    return found;
}

} // namespace

class TestTraceExport : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void emptyTraceIsValid() { QVERIFY(Json::parse(toChromeTrace({}))["traceEvents"].empty()); }

    void slicesHaveTimesSinceTheFirst()
    {
        const std::vector<TraceEvent> spans = {
            span(SpanKind::Task, Lane::Compute, 5'001'500, 5'002'750),
            span(SpanKind::Task, Lane::CopyIn, 5'000'000, 5'001'500, TaskKind::FetchWeights)};
        const auto slices = eventsOf(toChromeTrace(spans), "X");
        QCOMPARE(slices.size(), std::size_t{2});
        QVERIFY(slices[0]["name"] == "FetchWeights");
        QCOMPARE(slices[0]["ts"].get<double>(), 0.0);
        QCOMPARE(slices[1]["ts"].get<double>(), 1.5);
        QCOMPARE(slices[1]["dur"].get<double>(), 1.25);
        QCOMPARE(eventsOf(toChromeTrace(spans), "M").size(), std::size_t{4});
    }

    void overlappingSlicesOfOneLaneGoToSeveralRows()
    {
        const std::vector<TraceEvent> spans = {span(SpanKind::Task, Lane::Host, 0, 100),
            span(SpanKind::Task, Lane::Host, 50, 150), span(SpanKind::Task, Lane::Host, 120, 200)};
        std::map<int, double> busyUntil;
        for (const Json& slice : eventsOf(toChromeTrace(spans), "X")) {
            double& until = busyUntil[slice["tid"].get<int>()];
            QVERIFY(slice["ts"].get<double>() >= until);
            until = slice["ts"].get<double>() + slice["dur"].get<double>();
        }
        QCOMPARE(busyUntil.size(), std::size_t{2});
    }

    void arrowLeadsFromTheCauseToWhatWaited()
    {
        const std::vector<TraceEvent> spans = {
            span(SpanKind::Task, Lane::CopyIn, 0, 100, TaskKind::FetchWeights),
            span(SpanKind::Stall, Lane::CopyIn, 40, 100, TaskKind::FetchWeights),
            span(SpanKind::Task, Lane::Compute, 110, 200)};
        const std::string text = toChromeTrace(spans);
        const auto slices = eventsOf(text, "X");
        const auto starts = eventsOf(text, "s");
        const auto ends = eventsOf(text, "f");
        QCOMPARE(starts.size(), std::size_t{1});
        QCOMPARE(ends.size(), std::size_t{1});
        QVERIFY(starts[0]["id"] == ends[0]["id"]);
        QVERIFY(starts[0]["tid"] == slices[0]["tid"]); // the copy
        QVERIFY(ends[0]["tid"] == slices[2]["tid"]);   // the compute task
        QCOMPARE(ends[0]["ts"].get<double>(), 0.11);
    }

    void aTraceIsReadBackToTheNanosecond()
    {
        TraceEvent copy =
            span(SpanKind::Task, Lane::CopyOut, 7'000'001, 7'123'456, TaskKind::SendGradient);
        copy.group = 3;
        copy.micro = 1;
        copy.bytes = 4096;
        TraceEvent wait = copy;
        wait.kind = SpanKind::Stall;
        wait.beginNs = 7'100'000;
        wait.bytes = 0;
        const std::vector<TraceEvent> spans = {
            span(SpanKind::BatchWait, Lane::Compute, 6'999'000, 7'000'000), copy, wait,
            span(SpanKind::Task, Lane::Compute, 7'123'456, 7'200'000),
            span(SpanKind::Stall, Lane::Compute, 7'200'000, 7'200'500)};

        const StepTimeline timeline = timelineFromTrace(toChromeTrace(spans)).value();

        QCOMPARE(timeline.spans.size(), spans.size());
        QVERIFY(timeline.spans[0].cause == StallCause::Data);
        QCOMPARE(timeline.spans[1].task, std::string("SendGradient"));
        QCOMPARE(timeline.spans[1].beginNs, 1001);
        QCOMPARE(timeline.spans[1].endNs, 124'456);
        QCOMPARE(timeline.spans[1].bytes, 4096);
        QVERIFY(timeline.spans[2].lane == TimelineLane::CopyOut);
        QVERIFY(timeline.spans[2].cause == StallCause::D2h);
        QCOMPARE(timeline.spans[2].source, 1);
        QVERIFY(timeline.spans[4].cause == StallCause::Other);
        QCOMPARE(timeline.spans[4].source, -1);
    }

    // One lane takes both ways; its reads are shown with all that is read, its writes with all that
    // is written.
    void activationsOnDiskAreShownByTheirDirection()
    {
        const std::vector<TraceEvent> spans = {span(SpanKind::Task, Lane::Compute, 0, 10),
            span(SpanKind::Task, Lane::DiskBoundaries, 10, 40, TaskKind::WriteBoundary),
            span(SpanKind::Stall, Lane::DiskBoundaries, 20, 40, TaskKind::WriteBoundary),
            span(SpanKind::Task, Lane::DiskBoundaries, 50, 100, TaskKind::ReadBoundary),
            span(SpanKind::Stall, Lane::DiskBoundaries, 90, 100, TaskKind::ReadBoundary)};

        const StepTimeline timeline = timelineFromTrace(toChromeTrace(spans)).value();

        QCOMPARE(timeline.spans.size(), spans.size());
        QVERIFY(timeline.spans[1].lane == TimelineLane::DiskOut);
        QVERIFY(timeline.spans[2].lane == TimelineLane::DiskOut);
        QCOMPARE(timeline.spans[2].source, 1);
        QVERIFY(timeline.spans[3].lane == TimelineLane::DiskIn);
        QVERIFY(timeline.spans[4].lane == TimelineLane::DiskIn);
        QCOMPARE(timeline.spans[4].source, 3);
        for (const std::size_t wait : {2U, 4U})
            QVERIFY(timeline.spans[wait].cause == StallCause::Disk);
    }

    void readsAndWritesOfTheDiskComeBackOnLanesOfTheirOwn()
    {
        const std::vector<TraceEvent> spans = {span(SpanKind::Task, Lane::Compute, 0, 10),
            span(SpanKind::Task, Lane::DiskIn, 10, 100, TaskKind::ReadFromDisk),
            span(SpanKind::Task, Lane::DiskOut, 20, 90, TaskKind::WriteToDisk),
            span(SpanKind::Stall, Lane::DiskOut, 30, 90, TaskKind::WriteToDisk),
            span(SpanKind::Stall, Lane::DiskIn, 90, 100, TaskKind::ReadFromDisk),
            span(SpanKind::Checkpoint, Lane::Compute, 100, 110)};

        const std::string text = toChromeTrace(spans);
        const StepTimeline timeline = timelineFromTrace(text).value();

        QCOMPARE(timeline.spans.size(), spans.size());
        QVERIFY(timeline.spans[1].lane == TimelineLane::DiskIn);
        QVERIFY(timeline.spans[2].lane == TimelineLane::DiskOut);
        QVERIFY(timeline.spans[2].kind == TimelineKind::Task);
        QVERIFY(timeline.spans[3].lane == TimelineLane::DiskOut);
        QCOMPARE(timeline.spans[3].source, 2);
        QVERIFY(timeline.spans[4].lane == TimelineLane::DiskIn);
        QCOMPARE(timeline.spans[4].source, 1);
        for (const std::size_t wait : {3U, 4U})
            QVERIFY(timeline.spans[wait].cause == StallCause::Disk);
        QVERIFY(timeline.spans[5].kind == TimelineKind::Work);
        std::map<std::string, int> placeOf;
        std::map<int, std::string> nameOf;
        for (const Json& meta : eventsOf(text, "M")) {
            if (meta["name"] == "thread_name")
                nameOf[meta["tid"].get<int>()] = meta["args"]["name"].get<std::string>();
            else
                placeOf[nameOf.at(meta["tid"].get<int>())] = meta["args"]["sort_index"].get<int>();
        }
        QVERIFY(placeOf.at("Compute") < placeOf.at("DiskIn"));
        QVERIFY(placeOf.at("DiskIn") < placeOf.at("DiskOut"));
        QVERIFY(placeOf.at("DiskOut") < placeOf.at("Waits"));
    }

    void theArrowStartsAtTheLayerThatWasWaitedFor()
    {
        TraceEvent first = span(SpanKind::Task, Lane::CopyIn, 0, 100, TaskKind::FetchWeights);
        TraceEvent second = span(SpanKind::Task, Lane::CopyIn, 20, 100, TaskKind::FetchWeights);
        first.group = 1;
        second.group = 2;
        TraceEvent wait = span(SpanKind::Stall, Lane::CopyIn, 40, 100, TaskKind::FetchWeights);
        wait.group = 2;
        const std::vector<TraceEvent> spans = {
            first, second, wait, span(SpanKind::Task, Lane::Compute, 110, 200)};

        const auto starts = eventsOf(toChromeTrace(spans), "s");

        QCOMPARE(starts.size(), std::size_t{1});
        QCOMPARE(starts[0]["tid"].get<int>(), 201); // the second row of CopyIn
    }
};

MR_TEST(TestTraceExport)

} // namespace mr::test::tst_trace_export

#include "tst_trace_export.moc"
