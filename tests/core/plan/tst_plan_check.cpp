// Every rule: a correct plan passes, and the same plan with one thing broken names that rule.

#include "core/plan/plan_check.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_bench.h"

#include <QTest>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_plan_check {

namespace {

// A step in which half of every group visits the device: four blocks, host and state tiles of one
// cut, so that every group has two of each.
Bench visitingBench(Precision precision = Precision::BF16)
{
    Bench bench;
    bench.shape = smallShape(4);
    bench.precision = precision;
    bench.policy = policyWith("deep-optimizer-states", {{"device-share", "0.5"}, {"tile", "2KiB"}});
    return bench;
}

// A step of which blocks take turns in the slots of their gradients.
Bench sharingBench(Precision precision)
{
    Bench bench;
    bench.shape = smallShape(4);
    bench.precision = precision;
    return bench;
}

} // namespace

#define COMPARE_RULE(bench, rule)                                                                  \
    do {                                                                                           \
        const Status status = (bench).check();                                                     \
        QVERIFY2(!status.ok(), "the broken plan passed");                                          \
        QVERIFY(status.kind() == ErrorKind::Internal);                                             \
        QVERIFY2(status.message().find("'" + std::string(name(rule)) + "'") != std::string::npos,  \
            status.message().c_str());                                                             \
    } while (false)

class TestPlanCheck : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void correctPlansOfAllPoliciesAndOrdersPass()
    {
        for (const PolicyInfo& info : policyTable()) {
            for (const char* order : {"by-microbatch", "by-layer", "by-layer-flip"}) {
                for (const int microBatches : {1, 2, 5}) {
                    for (const bool tied : {false, true}) {
                        Bench bench;
                        bench.shape.tiedHead = tied;
                        bench.policy = policyOf(info.name, order);
                        bench.build(microBatches);

                        const Status status = bench.check();
                        QVERIFY2(status.ok(), status.message().c_str());
                    }
                }
            }
        }
    }

    void evaluationsAndFlushesPass()
    {
        Bench bench;
        Result<StepPlan> evaluation =
            buildEvaluation(specOf(6, 4), bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(evaluation.ok());
        bench.built = {std::move(evaluation).value(), bench.in};
        Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());

        bench.policy = latePolicy(0.5);
        bench.build();
        bench.in = bench.built.out;
        Result<BuiltStep> flush = buildFlush(bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(flush.ok());
        bench.built = std::move(flush).value();
        status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());
    }

    void waitOnALaterTaskIsFound()
    {
        Bench bench;
        bench.build();
        bench.plan().waits.front() = Wait::onTask(30);
        COMPARE_RULE(bench, PlanRule::WaitsPointBack);
    }

    void waitOnNothingTheCarryHasIsFound()
    {
        Bench bench;
        bench.build();
        bench.plan().waits.front() = Wait::onCarried(0);
        COMPARE_RULE(bench, PlanRule::WaitsPointBack);
    }

    void waitsOutsideThePlanAreFound()
    {
        Bench bench;
        bench.build();
        bench.plan().tasks[2].waitCount = 1000;
        COMPARE_RULE(bench, PlanRule::WaitsPointBack);
    }

    void taskOnAForeignLaneIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::SendGradient).lane = Lane::CopyIn;
        COMPARE_RULE(bench, PlanRule::LaneFits);
    }

    void rangeCutInsideABlockIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::UpdateOnHost).elementCount -= 1;
        COMPARE_RULE(bench, PlanRule::RangesAreCut);
    }

    void rangeThatLeavesItsGroupIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::SendGradient).firstElement = kCutElements;
        COMPARE_RULE(bench, PlanRule::RangesAreCut);
    }

    void tierOverItsBudgetIsFound()
    {
        Bench bench;
        bench.build();
        bench.budget.hostBytes = bench.plan().peakBytes[1] - 1;
        COMPARE_RULE(bench, PlanRule::BudgetHolds);
        bench.budget.hostBytes = bench.plan().peakBytes[1];
        QVERIFY(bench.check().ok());
    }

    void layerOutOfTurnIsFound()
    {
        Bench bench;
        bench.build();
        std::swap(bench.find(TaskKind::Forward, 1).group, bench.find(TaskKind::Forward, 2).group);
        COMPARE_RULE(bench, PlanRule::LayersInOrder);
    }

    void missingBackwardIsFound()
    {
        Bench bench;
        bench.build(1);
        bench.erase(TaskKind::Backward, 3);
        COMPARE_RULE(bench, PlanRule::LayersInOrder);
    }

    // Sums would be made in another order, which decides bits.
    void orderOfAnotherPolicyIsFound()
    {
        Bench bench;
        bench.build();
        bench.policy = policyOf("zero-offload", "by-layer");
        COMPARE_RULE(bench, PlanRule::LayersInOrder);
    }

    void staleReadIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::Forward, 4).version = 5;
        COMPARE_RULE(bench, PlanRule::NotStaler);
    }

    void updateLeftForLaterThanTheClockAllowsIsFound()
    {
        Bench bench;
        bench.policy = latePolicy(0.5);
        bench.build();
        bench.built.out.pending.back().dueStep += 1;
        COMPARE_RULE(bench, PlanRule::NotStaler);
    }

    void readOfAVersionThatIsNotThereIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::Forward, 4).version = 7;
        COMPARE_RULE(bench, PlanRule::WeightsAtVersion);
    }

    void forwardThatDoesNotWaitForALateUploadIsFound()
    {
        Bench bench;
        bench.policy = latePolicy(1.0);
        bench.build();
        bench.in = bench.built.out;
        bench.build();
        QVERIFY(bench.check().ok());
        for (Task& task : bench.plan().tasks) {
            if (task.kind == TaskKind::Forward && task.group.value == 2)
                task.waitCount = 0;
        }
        COMPARE_RULE(bench, PlanRule::WeightsAtVersion);
    }

    void forwardThatDoesNotWaitForItsBatchIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::Forward).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::BatchIsThere);
    }

    void batchBufferRefilledUnderItsReaderIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::FetchBatch, 2).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::SlotAfterLastReader);
    }

    void weightsWrittenUnderTheirReaderAreFound()
    {
        Bench bench;
        bench.policy = latePolicy(1.0);
        bench.build();
        bench.in = bench.built.out;
        Result<BuiltStep> flush = buildFlush(bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(flush.ok());
        // An evaluation beside the flush: its readers and the uploads know nothing of each other.
        StepPlan& plan = flush.value().plan;
        Task fetch;
        fetch.kind = TaskKind::FetchBatch;
        fetch.lane = Lane::CopyIn;
        fetch.micro = MicroBatch{0};
        std::vector<Task> work = {fetch};
        plan.microBatches = 1;
        plan.waits.insert(plan.waits.begin(), Wait::onTask(0));
        for (Task& task : plan.tasks)
            task.firstWait += 1;
        bench.in.pending.clear();
        for (int g = 0; g < 4; ++g) {
            Task forward;
            forward.kind = TaskKind::Forward;
            forward.group = GroupId{g};
            forward.micro = MicroBatch{0};
            forward.version = bench.in.step;
            forward.elementCount = kGroupElements;
            forward.waitCount = g == 0 ? 1 : 0;
            work.push_back(forward);
        }
        for (std::size_t i = 1; i < plan.waits.size(); ++i)
            plan.waits[i] = Wait::onTask(plan.waits[i].index() + 5);
        plan.tasks.insert(plan.tasks.begin(), work.begin(), work.end());
        bench.built = std::move(flush).value();
        COMPARE_RULE(bench, PlanRule::SlotAfterLastReader);
    }

    void gradientSentBeforeItIsRoundedIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::SendGradient).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::GradientFinished);
    }

    void gradientRoundedBeforeTheLastMicroBatchIsFound()
    {
        Bench bench;
        bench.build(3);
        // Swaps the last backward of the upper block with the rounding that follows it.
        std::swap(bench.find(TaskKind::Backward, 9), bench.find(TaskKind::FinishGradient, 1));
        COMPARE_RULE(bench, PlanRule::GradientFinished);
    }

    void hostUpdateWithoutItsGradientIsFound()
    {
        Bench bench;
        bench.build();
        bench.erase(TaskKind::SendGradient, 3);
        COMPARE_RULE(bench, PlanRule::GradientFinished);
    }

    void updateBeforeTheNormIsFound()
    {
        Bench bench;
        bench.policy = policyOf("resident");
        bench.build();
        std::swap(bench.find(TaskKind::JoinNorm), bench.find(TaskKind::UpdateOnDevice));
        COMPARE_RULE(bench, PlanRule::NormFirst);
    }

    void groupMissingInTheNormIsFound()
    {
        Bench bench;
        bench.build();
        bench.erase(TaskKind::NormPart, 2);
        COMPARE_RULE(bench, PlanRule::NormFirst);
    }

    void hostUpdateThatDoesNotWaitForTheScalarsIsFound()
    {
        Bench bench;
        bench.build();
        // All gradients are there, the norm may not be.
        const auto last = static_cast<TaskIndex>(
            &bench.find(TaskKind::SendGradient, 3) - bench.plan().tasks.data());
        bench.plan().waits[bench.find(TaskKind::UpdateOnHost).firstWait] = Wait::onTask(last);
        COMPARE_RULE(bench, PlanRule::NormFirst);
    }

    void gradientSentOverOneThatIsStillNeededIsFound()
    {
        Bench bench;
        bench.build();
        // Exact, due after this step's forward, and not made in this step.
        PendingUpdate update;
        update.group = GroupId{3};
        update.version = 7;
        update.dueStep = 8;
        update.elementCount = kGroupElements;
        bench.in.pending = {update};
        COMPARE_RULE(bench, PlanRule::HostBytes);
    }

    void hostUpdateUnderACarriedUploadIsFound()
    {
        Bench bench;
        bench.build();
        // On a lane that orders it with nothing of the plan, and no task waits for it.
        bench.in.unfinished = {leftRunning(TaskKind::FetchWeights, Lane::DiskOut, GroupId{0})};
        COMPARE_RULE(bench, PlanRule::HostBytes);

        bench.build();
        const Status status = bench.check();
        QVERIFY2(status.ok(), status.message().c_str());
    }

    void elementsUpdatedTwiceAreFound()
    {
        Bench bench;
        bench.policy = policyOf("resident");
        bench.build();
        bench.plan().tasks.push_back(bench.find(TaskKind::UpdateOnDevice, 2));
        COMPARE_RULE(bench, PlanRule::UpdatedOnce);
    }

    void elementsNotUpdatedAreFound()
    {
        Bench bench;
        bench.policy = policyOf("resident");
        bench.build();
        bench.find(TaskKind::UpdateOnDevice, 2).elementCount -= kCutElements;
        COMPARE_RULE(bench, PlanRule::UpdatedOnce);
    }

    void dueUpdateThatIsCarriedOnIsFound()
    {
        Bench bench;
        Result<BuiltStep> flush = buildFlush(bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(flush.ok());
        bench.built = std::move(flush).value();
        PendingUpdate update;
        update.group = GroupId{1};
        update.version = 6;
        update.dueStep = 7;
        update.elementCount = kGroupElements;
        bench.in.pending = {update};
        bench.built.out.pending = {update};
        COMPARE_RULE(bench, PlanRule::UpdatedOnce);
    }

    void hostUpdateThatIsNotUploadedIsFound()
    {
        Bench bench;
        bench.build();
        bench.plan().tasks.pop_back();
        COMPARE_RULE(bench, PlanRule::UploadFollows);
    }

    void uploadThatDoesNotWaitForItsUpdateIsFound()
    {
        Bench bench;
        bench.build();
        bench.find(TaskKind::FetchWeights, 3).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::UploadFollows);
    }

    void updateThatDoesNotWaitForItsStateIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        QVERIFY2(bench.check().ok(), bench.check().message().c_str());
        bench.find(TaskKind::UpdateOnDevice).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::StateAtHand);
    }

    void updateWhoseStateNeverComesIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        bench.erase(TaskKind::FetchState);
        COMPARE_RULE(bench, PlanRule::StateAtHand);
    }

    void updateInTheSlotOfAnotherTileIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        bench.find(TaskKind::UpdateOnDevice, 1).slot = 0;
        COMPARE_RULE(bench, PlanRule::StateAtHand);
    }

    void stateSlotThatThePlanDoesNotHaveIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        bench.plan().stateSlots = 2;
        COMPARE_RULE(bench, PlanRule::StateAtHand);
    }

    void stateStoredBeforeItIsUpdatedIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        bench.find(TaskKind::StoreState, 1).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::StateAtHand);
    }

    void stateSlotRefilledBeforeItsTileIsHomeIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        bench.find(TaskKind::FetchState, 3).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::SlotAfterLastReader);
    }

    void stateThatIsNotBroughtHomeIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        bench.erase(TaskKind::StoreState, 11); // the last; no later tile takes the slot
        COMPARE_RULE(bench, PlanRule::StateAtHand);
    }

    // A host update of the version before, of a range that visits in this step.
    void stateFetchedUnderAHostUpdateIsFound()
    {
        Bench bench = visitingBench();
        bench.build();
        for (const TaskKind kind : {TaskKind::UpdateOnHost, TaskKind::FetchWeights}) {
            bench.find(kind).version = 6;
            bench.find(kind).firstElement = 0;
        }
        COMPARE_RULE(bench, PlanRule::HostBytes);
    }

    void stateFetchedUnderACarriedHostUpdateIsFound()
    {
        Bench bench = visitingBench();
        bench.in.unfinished = {leftRunning(TaskKind::UpdateOnHost, Lane::Host, GroupId{0})};
        bench.build(1);
        QVERIFY2(bench.check().ok(), bench.check().message().c_str());
        bench.find(TaskKind::FetchState).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::HostBytes);
    }

    // In fp32, and of one micro-batch, the sum itself is sent. Block 4 is in the slot that block 2
    // takes.
    void sumOverwrittenBeforeItIsSentIsFound()
    {
        for (const Precision precision : {Precision::F32, Precision::BF16}) {
            Bench bench = sharingBench(precision);
            bench.build(1);
            QCOMPARE(bench.plan().gradients.sumSlots, 2);
            QVERIFY2(bench.check().ok(), bench.check().message().c_str());
            Task& backward = bench.find(TaskKind::Backward, 3);
            QCOMPARE(backward.group.value, 2);
            QCOMPARE(backward.waitCount, 1U);
            backward.waitCount = 0;
            COMPARE_RULE(bench, PlanRule::SlotAfterLastReader);
        }
    }

    // In bf16 a rounded copy of the sum of micro-batches is sent.
    void finishedGradientOverwrittenBeforeItIsSentIsFound()
    {
        Bench bench = sharingBench(Precision::BF16);
        bench.build();
        QCOMPARE(bench.plan().gradients.finishedSlots, 2);
        QVERIFY2(bench.check().ok(), bench.check().message().c_str());
        Task& finish = bench.find(TaskKind::FinishGradient, 3);
        QCOMPARE(finish.group.value, 2);
        QCOMPARE(finish.waitCount, 1U);
        finish.waitCount = 0;
        COMPARE_RULE(bench, PlanRule::SlotAfterLastReader);
    }

    // The next micro-batch adds to a sum that another block's has replaced.
    void sumSlotTakenBeforeTheSumIsCompleteIsFound()
    {
        Bench bench = sharingBench(Precision::BF16);
        bench.build(2);
        QCOMPARE(bench.plan().gradients.sumSlots, 0);
        bench.plan().gradients.sumSlots = 1;
        COMPARE_RULE(bench, PlanRule::SlotAfterLastReader);
    }

    void lossesSentBeforeTheyAreThereAreFound()
    {
        Bench bench;
        Result<StepPlan> evaluation =
            buildEvaluation(specOf(6, 2), bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(evaluation.ok());
        bench.built = {std::move(evaluation).value(), bench.in};
        bench.find(TaskKind::SendScalars).waitCount = 0;
        COMPARE_RULE(bench, PlanRule::LossesFirst);
    }

    void ownershipThatMovesUnderAHostJobIsFound()
    {
        Bench bench;
        bench.build();
        Task move;
        move.kind = TaskKind::MoveOwnership;
        move.lane = Lane::CopyOut;
        move.group = GroupId{1};
        move.elementCount = kGroupElements;
        bench.plan().tasks.push_back(move);
        bench.in.hostJob = HostJob{};
        COMPARE_RULE(bench, PlanRule::OwnerStable);
    }

    void carriesThatDoNotFollowAreFound()
    {
        const std::vector<std::function<void(Carry&)>> breaks = {
            [](Carry& carry) { carry.step += 1; },
            [](Carry& carry) { carry.window += 1; },
            [](Carry& carry) { carry.stepsIntoWindow = 1; },
            [](Carry& carry) { carry.ownership = OwnershipId{3}; },
            [](Carry& carry) { holdSlot(carry, {GroupId{1}}); },
            [](Carry& carry) {
                carry.unfinished.push_back({Task{}, Wait::onTask(9999)});
            },
            [](Carry& carry) {
                carry.unfinished.push_back({Task{}, Wait::onTask(1)});
            },
            [](Carry& carry) { carry.pending.push_back({}); },
        };
        for (const auto& breakIt : breaks) {
            Bench bench;
            bench.build();
            breakIt(bench.built.out);
            COMPARE_RULE(bench, PlanRule::CarryFollows);
        }
    }

    void unfinishedTaskThatIsLostIsFound()
    {
        Bench bench;
        bench.build();
        bench.in.unfinished = {leftRunning(TaskKind::WriteToDisk, Lane::DiskOut, GroupId{})};
        COMPARE_RULE(bench, PlanRule::CarryFollows);
    }

    void planThatDoesNotFollowItsCarryIsFound()
    {
        Bench bench;
        bench.build();
        bench.in.step = 3;
        COMPARE_RULE(bench, PlanRule::CarryFollows);
    }
};

MR_TEST(TestPlanCheck)

} // namespace mr::test::tst_plan_check

#include "tst_plan_check.moc"
