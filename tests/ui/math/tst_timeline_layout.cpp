// The arithmetic of the step timeline.

#include "math/timeline_layout.h"
#include "support/test_room.h"
#include "ui/support/demo_timeline.h"

#include <QTest>

#include <algorithm>

namespace mr::test::tst_timeline_layout {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

TimelineSpan span(TimelineLane lane, std::int64_t begin, std::int64_t end)
{
    TimelineSpan made;
    made.lane = lane;
    made.task = "Forward";
    made.beginNs = begin;
    made.endNs = end;
    return made;
}

StepTimeline timelineOf(std::vector<TimelineSpan> spans)
{
    StepTimeline timeline;
    for (const TimelineSpan& one : spans)
        timeline.endNs = std::max(timeline.endNs, one.endNs);
    timeline.spans = std::move(spans);
    return timeline;
}

constexpr TimeRange kWhole{0.0, 1e6};

} // namespace

class TestTimelineLayout : public QObject
{
    Q_OBJECT

private slots:

    void lanesWithoutWorkHaveNoRows()
    {
        const auto rows = timelineRows(
            timelineOf({span(TimelineLane::Compute, 0, 10), span(TimelineLane::Host, 5, 20)}));

        QCOMPARE(rows.size(), std::size_t{2});
        QVERIFY(rows[0].lane == TimelineLane::Compute);
        QVERIFY(rows[1].lane == TimelineLane::Host);
    }

    void anEmptyStepStillHasComputeToShow()
    {
        QCOMPARE(timelineRows(StepTimeline()).size(), std::size_t{1});
    }

    void overlappingSpansOfALaneGetRowsOfTheirOwn()
    {
        const auto rows = timelineRows(timelineOf({span(TimelineLane::Host, 0, 100),
            span(TimelineLane::Host, 50, 150), span(TimelineLane::Host, 100, 200)}));

        QCOMPARE(rows.size(), std::size_t{3}); // Compute, and two of the host
        QVERIFY(rows[1].firstOfLane);
        QVERIFY(!rows[2].firstOfLane);
        QVERIFY(rows[1].spans == (std::vector<std::uint32_t>{0, 2}));
        QVERIFY(rows[2].spans == (std::vector<std::uint32_t>{1}));
    }

    void waitsLieInTheRowOfCompute()
    {
        TimelineSpan wait = span(TimelineLane::CopyIn, 10, 20);
        wait.kind = TimelineKind::Wait;
        const auto rows = timelineRows(timelineOf({span(TimelineLane::Compute, 0, 10), wait}));

        QCOMPARE(rows.size(), std::size_t{1});
        QCOMPARE(rows[0].spans.size(), std::size_t{2});
    }

    void everySpanHasExactlyOneRow()
    {
        for (const DemoPolicy policy :
            {DemoPolicy::Resident, DemoPolicy::ZeroOffload, DemoPolicy::Streamed}) {
            const StepTimeline timeline = demoTimeline(policy, 50);
            const auto rows = timelineRows(timeline);

            std::vector<int> seen(timeline.spans.size(), 0);
            for (const TimelineRow& row : rows) {
                std::int64_t busyUntil = 0;
                for (const std::uint32_t index : row.spans) {
                    ++seen[index];
                    QVERIFY(timeline.spans[index].beginNs >= busyUntil);
                    busyUntil = timeline.spans[index].endNs;
                }
            }
            QVERIFY(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
            QCOMPARE(rowsOfSpans(rows, timeline.spans.size()).size(), timeline.spans.size());
        }
    }

    void barsNarrowerThanAColumnShareIt()
    {
        const StepTimeline timeline = largeTimeline(20'000);
        const auto rows = timelineRows(timeline);
        constexpr int kColumns = 900;

        std::size_t spans = 0;
        const auto bars =
            timelineBars(rows[0], {0.0, static_cast<double>(timeline.endNs)}, kColumns);

        for (std::size_t i = 0; i < bars.size(); ++i) {
            spans += bars[i].count;
            QVERIFY(bars[i].left >= 0.0 && bars[i].left + bars[i].width <= kColumns + 1.0);
            if (i > 0)
                QVERIFY(bars[i].left >= bars[i - 1].left);
        }
        QCOMPARE(spans, rows[0].spans.size()); // none is lost
        QVERIFY(bars.size() <= 2 * kColumns);
    }

    void aSharedColumnShowsItsLongestSpan()
    {
        const StepTimeline timeline = timelineOf({span(TimelineLane::Compute, 0, 100),
            span(TimelineLane::Compute, 100, 700), span(TimelineLane::Compute, 700, 800)});

        const auto bars = timelineBars(timelineRows(timeline)[0], kWhole, 100);

        QCOMPARE(bars.size(), std::size_t{1});
        QCOMPARE(bars[0].span, std::uint32_t{1});
        QCOMPARE(bars[0].count, std::uint32_t{3});
    }

    void whatIsOutOfSightMakesNoBar()
    {
        const StepTimeline timeline = timelineOf(
            {span(TimelineLane::Compute, 0, 100'000), span(TimelineLane::Compute, 200'000, 300'000),
                span(TimelineLane::Compute, 500'000, 600'000)});

        const auto bars = timelineBars(timelineRows(timeline)[0], {250'000.0, 450'000.0}, 200);

        QCOMPARE(bars.size(), std::size_t{1});
        QCOMPARE(bars[0].left, 0.0);
        QCOMPARE(bars[0].width, 50.0);
    }

    void pointingFindsTheSpanOrTheNearestOneInReach()
    {
        const StepTimeline timeline = timelineOf(
            {span(TimelineLane::Compute, 100, 200), span(TimelineLane::Compute, 400, 500)});
        const TimelineRow row = timelineRows(timeline)[0];

        QCOMPARE(spanAt(row, 150.0, 0.0), 0);
        QCOMPARE(spanAt(row, 220.0, 10.0), -1);
        QCOMPARE(spanAt(row, 220.0, 30.0), 0);
        QCOMPARE(spanAt(row, 380.0, 30.0), 1);
        QCOMPARE(spanAt(row, 10.0, 100.0), 0);
        QCOMPARE(nearestSpan(row, 900.0), 1);
        QCOMPARE(nearestSpan(TimelineRow(), 900.0), -1);
    }

    void zoomingKeepsTheMomentUnderThePointer()
    {
        const TimeRange half = zoomed(kWhole, kWhole, 0.5, 250'000.0);

        QCOMPARE(half.length(), 500'000.0);
        QCOMPARE((250'000.0 - half.from) / half.length(), 0.25);
        QVERIFY(zoomed(half, kWhole, 100.0, 300'000.0) == kWhole);
        QCOMPARE(zoomed(kWhole, kWhole, 1e-9, 5e5).length(), 1000.0); // a microsecond
    }

    void panningStopsAtTheEnds()
    {
        const TimeRange middle{400'000.0, 500'000.0};

        QVERIFY(panned(middle, kWhole, 50'000.0) == (TimeRange{450'000.0, 550'000.0}));
        QVERIFY(panned(middle, kWhole, 9e9) == (TimeRange{900'000.0, 1e6}));
        QVERIFY(panned(middle, kWhole, -9e9) == (TimeRange{0.0, 100'000.0}));
    }

    void revealingMovesNoFurtherThanNeeded()
    {
        const TimeRange middle{400'000.0, 500'000.0};

        QVERIFY(revealing(middle, kWhole, 420'000.0, 480'000.0) == middle);
        QCOMPARE(revealing(middle, kWhole, 510'000.0, 520'000.0).to, 520'000.0);
        QCOMPARE(revealing(middle, kWhole, 100'000.0, 120'000.0).from, 100'000.0);
        QCOMPARE(revealing(middle, kWhole, 100'000.0, 700'000.0).from, 100'000.0); // too long
    }

    void neighboursStopAtTheEndsOfTheRow()
    {
        const StepTimeline timeline =
            timelineOf({span(TimelineLane::Compute, 0, 1), span(TimelineLane::Compute, 1, 2)});
        const TimelineRow row = timelineRows(timeline)[0];

        QCOMPARE(neighbour(row, 0, 1), 1);
        QCOMPARE(neighbour(row, 1, 1), 1);
        QCOMPARE(neighbour(row, 0, -1), 0);
        QCOMPARE(neighbour(TimelineRow(), 0, 1), -1);
    }

    void theLongestWaitIsThatOfItsCause()
    {
        const StepTimeline timeline = demoTimeline(DemoPolicy::ZeroOffload, 50);

        const int wait = longestWait(timeline, StallCause::H2d);

        QVERIFY(wait >= 0);
        QVERIFY(timeline.spans[static_cast<std::size_t>(wait)].cause == StallCause::H2d);
        QCOMPARE(longestWait(timeline, StallCause::Disk), -1);
    }
};

MR_TEST(TestTimelineLayout)

} // namespace mr::test::tst_timeline_layout

#include "tst_timeline_layout.moc"
