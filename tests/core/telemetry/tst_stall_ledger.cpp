#include "core/base/philox.h"
#include "core/telemetry/stall_ledger.h"
#include "support/heap_counter.h"
#include "support/test_room.h"

#include <QtTest>

#include <numeric>

namespace mr::test::tst_stall_ledger {

namespace {

// A plan and its measured times, made task by task.
struct Case {
    StepPlan plan;
    std::vector<Interval> times;
    std::vector<CarriedTime> carried;
    StepTimes step;

    TaskIndex add(
        Lane lane, Interval span, std::vector<Wait> waits = {}, TaskKind kind = TaskKind::Forward)
    {
        Task task;
        task.kind = kind;
        task.lane = lane;
        task.firstWait = static_cast<std::uint32_t>(plan.waits.size());
        task.waitCount = static_cast<std::uint16_t>(waits.size());
        plan.waits.insert(plan.waits.end(), waits.begin(), waits.end());
        plan.tasks.push_back(task);
        times.push_back(span);
        return static_cast<TaskIndex>(plan.tasks.size() - 1);
    }

    StallSplit analyse(std::int64_t begin, std::int64_t ready, std::int64_t end,
        std::vector<TraceEvent>* stalls = nullptr)
    {
        step.beginNs = begin;
        step.batchReadyNs = ready;
        step.endNs = end;
        step.tasks = times;
        step.carried = carried;
        return StallLedger(plan.tasks.size()).analyse(plan, step, stalls);
    }
};

std::int64_t of(const StallSplit& split, StallCause cause)
{
    return split.stallNs.at(static_cast<std::size_t>(cause));
}

std::int64_t sum(const StallSplit& split)
{
    return std::accumulate(split.stallNs.begin(), split.stallNs.end(), split.computeNs);
}

} // namespace

class TestStallLedger : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void computeWithoutGapsHasNoStall()
    {
        Case c;
        c.add(Lane::Compute, {100, 200});
        c.add(Lane::Compute, {200, 450});
        const StallSplit split = c.analyse(100, 100, 450);
        QCOMPARE(split.computeNs, 350);
        QCOMPARE(sum(split), 350);
    }

    void eachLaneHasItsOwnCause()
    {
        const std::array<std::pair<Lane, StallCause>, 5> expected = {
            {{Lane::CopyIn, StallCause::H2d}, {Lane::CopyOut, StallCause::D2h},
                {Lane::Host, StallCause::HostUpdate}, {Lane::DiskIn, StallCause::Disk},
                {Lane::DiskOut, StallCause::Disk}}};
        for (const auto& [lane, cause] : expected) {
            Case c;
            c.add(Lane::Compute, {100, 200});
            const TaskIndex slow = c.add(lane, {150, 300});
            c.add(Lane::Compute, {300, 350}, {Wait::onTask(slow)});
            const StallSplit split = c.analyse(100, 100, 350);
            QCOMPARE(of(split, cause), 100);
            QCOMPARE(split.computeNs, 150);
            QCOMPARE(sum(split), 250);
        }
    }

    void waitingForTheBatchIsData()
    {
        Case c;
        c.add(Lane::CopyIn, {140, 160}, {}, TaskKind::FetchBatch);
        c.add(Lane::Compute, {165, 200}, {Wait::onTask(0)});
        const StallSplit split = c.analyse(100, 130, 200);
        QCOMPARE(of(split, StallCause::Data), 30);
        QCOMPARE(of(split, StallCause::H2d), 20);
        QCOMPARE(of(split, StallCause::Other), 15); // 10 before the copy, 5 after it
        QCOMPARE(split.computeNs, 35);
    }

    void batchThatCameLaterThanTheFirstTaskCostsOnlyUntilIt()
    {
        Case c;
        c.add(Lane::Compute, {120, 200});
        const StallSplit split = c.analyse(100, 150, 200);
        QCOMPARE(of(split, StallCause::Data), 20);
        QCOMPARE(split.computeNs, 80);
    }

    void chainIsWalkedBackToItsBeginning()
    {
        // gradient out 200-240, update 240-300, weights in 310-350, compute at 355
        Case c;
        const TaskIndex compute = c.add(Lane::Compute, {100, 200});
        const TaskIndex out = c.add(Lane::CopyOut, {200, 240}, {Wait::onTask(compute)});
        const TaskIndex host = c.add(Lane::Host, {240, 300}, {Wait::onTask(out)});
        const TaskIndex in = c.add(Lane::CopyIn, {310, 350}, {Wait::onTask(host)});
        c.add(Lane::Compute, {355, 400}, {Wait::onTask(in)});
        const StallSplit split = c.analyse(100, 100, 400);
        QCOMPARE(of(split, StallCause::D2h), 40);
        QCOMPARE(of(split, StallCause::HostUpdate), 60);
        QCOMPARE(of(split, StallCause::H2d), 40);
        QCOMPARE(of(split, StallCause::Other), 15);
        QCOMPARE(split.computeNs, 145);
    }

    void copyThatWaitedForItsLaneBlamesTheLane()
    {
        // Two copies share a lane; compute waits for the second, which waited for the first.
        Case c;
        c.add(Lane::CopyIn, {100, 180});
        const TaskIndex second = c.add(Lane::CopyIn, {180, 220});
        c.add(Lane::Compute, {220, 300}, {Wait::onTask(second)});
        const StallSplit split = c.analyse(100, 100, 300);
        QCOMPARE(of(split, StallCause::H2d), 120);
    }

    void copyBesideComputeCostsOnlyWhatSticksOut()
    {
        Case c;
        c.add(Lane::Compute, {100, 200});
        const TaskIndex copy = c.add(Lane::CopyIn, {110, 230});
        c.add(Lane::Compute, {230, 300}, {Wait::onTask(copy)});
        const StallSplit split = c.analyse(100, 100, 300);
        QCOMPARE(of(split, StallCause::H2d), 30);
        QCOMPARE(sum(split), 200);
    }

    void ofTwoOverlappingWaitsTheLaterOneIsBlamed()
    {
        Case c;
        const TaskIndex in = c.add(Lane::CopyIn, {100, 150});
        const TaskIndex disk = c.add(Lane::DiskIn, {100, 170});
        c.add(Lane::Compute, {170, 200}, {Wait::onTask(in), Wait::onTask(disk)});
        const StallSplit split = c.analyse(100, 100, 200);
        QCOMPARE(of(split, StallCause::Disk), 70);
        QCOMPARE(of(split, StallCause::H2d), 0);
    }

    void endOfTheStepWaitsForWhatEndedLast()
    {
        Case c;
        const TaskIndex compute = c.add(Lane::Compute, {100, 200});
        const TaskIndex out = c.add(Lane::CopyOut, {200, 230}, {Wait::onTask(compute)});
        c.add(Lane::Host, {230, 290}, {Wait::onTask(out)});
        const StallSplit split = c.analyse(100, 100, 295);
        QCOMPARE(of(split, StallCause::D2h), 30);
        QCOMPARE(of(split, StallCause::HostUpdate), 60);
        QCOMPARE(of(split, StallCause::Other), 5);
    }

    void carriedWorkIsBlamedWhereItsTimesAreKnown()
    {
        Case c;
        c.carried = {{TaskKind::UpdateOnHost, Lane::Host, {50, 140}}};
        c.add(Lane::Compute, {140, 200}, {Wait::onCarried(0)});
        QCOMPARE(of(c.analyse(100, 100, 200), StallCause::HostUpdate), 40);
        c.carried.clear();
        QCOMPARE(of(c.analyse(100, 100, 200), StallCause::Other), 40);
    }

    void tasksThatDidNotRunExplainNothing()
    {
        Case c;
        const TaskIndex idle = c.add(Lane::CopyIn, {0, 0});
        c.add(Lane::Compute, {130, 200}, {Wait::onTask(idle)});
        const StallSplit split = c.analyse(100, 100, 200);
        QCOMPARE(of(split, StallCause::Other), 30);
        QCOMPARE(split.computeNs, 70);
    }

    void stepWithoutTasksIsOther()
    {
        Case c;
        const StallSplit split = c.analyse(100, 120, 200);
        QCOMPARE(of(split, StallCause::Data), 20);
        QCOMPARE(of(split, StallCause::Other), 80);
    }

    void stallEventsCoverTheStallsAndStopWhenFull()
    {
        Case c;
        const TaskIndex in = c.add(Lane::CopyIn, {110, 150}, {}, TaskKind::FetchWeights);
        c.add(Lane::Compute, {160, 200}, {Wait::onTask(in)});
        std::vector<TraceEvent> events;
        events.reserve(8);
        const StallSplit split = c.analyse(100, 100, 200, &events);
        std::int64_t total = 0;
        for (const TraceEvent& e : events)
            total += e.endNs - e.beginNs;
        QCOMPARE(total, sum(split) - split.computeNs);
        QCOMPARE(events.size(), std::size_t{3});
        QVERIFY(events[1].lane == Lane::CopyIn && events[1].task == TaskKind::FetchWeights);
        QCOMPARE(events[1].beginNs, 110);

        std::vector<TraceEvent> small;
        small.reserve(1);
        c.analyse(100, 100, 200, &small);
        QCOMPARE(small.size(), std::size_t{1});
    }

    void randomPlansAddUpAndNothingIsNegative()
    {
        for (std::uint64_t seed = 0; seed < 2000; ++seed) {
            std::uint64_t counter = 0;
            const auto random = [&](std::uint32_t below) {
                return static_cast<std::int64_t>(philox(seed, counter++)[0] % below);
            };
            Case c;
            const std::int64_t count = random(30);
            for (std::int64_t i = 0; i < count; ++i) {
                std::vector<Wait> waits;
                for (std::int64_t w = random(3); i > 0 && w > 0; --w)
                    waits.push_back(Wait::onTask(
                        static_cast<TaskIndex>(random(static_cast<std::uint32_t>(i)))));
                if (random(10) == 0)
                    waits.push_back(Wait::onCarried(static_cast<TaskIndex>(random(3))));
                // Overlaps, empty and unordered intervals, some outside the step: any is survived.
                const std::int64_t begin = 900 + random(1200);
                const Interval span =
                    random(8) == 0 ? Interval{} : Interval{begin, begin + random(200)};
                c.add(static_cast<Lane>(random(5)), span, waits);
            }
            c.carried = {{TaskKind::UpdateOnHost, Lane::Host, {800, 800 + random(400)}}};
            const std::int64_t end = 1000 + random(1000);
            const StallSplit split = c.analyse(1000, 900 + random(500), end);
            QCOMPARE(sum(split), end - 1000);
            QVERIFY(split.computeNs >= 0);
            for (const std::int64_t ns : split.stallNs)
                QVERIFY(ns >= 0);

            const StepRow row = toStepRow(split);
            QCOMPARE(row.wallUs, (end - 1000) / 1000);
            QCOMPARE(
                std::accumulate(row.stallUs.begin(), row.stallUs.end(), row.computeUs), row.wallUs);
            for (const std::int64_t us : row.stallUs)
                QVERIFY(us >= 0);
        }
    }

    void cutsOfMicrosecondsGoToOther()
    {
        StallSplit split;
        split.computeNs = 1999;
        split.stallNs = {2999, 999, 0, 999, 0, 4};
        const StepRow row = toStepRow(split);
        QCOMPARE(row.wallUs, 7);
        QCOMPARE(row.computeUs, 1);
        QCOMPARE(row.stallUs[0], 2);
        QCOMPARE(row.stallUs[5], 4);
    }

    void analysingAllocatesNothing()
    {
        Case c;
        const TaskIndex in = c.add(Lane::CopyIn, {110, 150});
        c.add(Lane::Compute, {160, 200}, {Wait::onTask(in)});
        c.step = {100, 100, 200, c.times, {}};
        StallLedger ledger(c.plan.tasks.size());
        std::vector<TraceEvent> events;
        events.reserve(4);
        const std::uint64_t before = heapCountsOfThisThread().ours;
        const StallSplit split = ledger.analyse(c.plan, c.step, &events);
        QCOMPARE(heapCountsOfThisThread().ours, before);
        QCOMPARE(split.computeNs, 40);
    }
};

MR_TEST(TestStallLedger)

} // namespace mr::test::tst_stall_ledger

#include "tst_stall_ledger.moc"
