// Every rule: a correct plan passes, and the same plan with one thing broken names that rule.

#include "core/plan/plan_check.h"
#include "core/plan/plan_text.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <algorithm>
#include <functional>

using namespace mr;
using namespace mr::test;

namespace {

// A step to be broken: two blocks, three micro-batches, after step 6.
struct Bench {
    ModelShape shape = smallShape(2);
    OffloadPolicy policy = policyOf("zero-offload");
    Budget budget = endless();
    Carry in = carryOf(6);
    BuiltStep built;

    void build(int microBatches = 3)
    {
        Result<BuiltStep> made =
            buildPlan(specOf(in.step + 1, microBatches), in, shape, budget, {}, policy);
        QVERIFY(made.ok());
        built = std::move(made).value();
    }

    StepPlan& plan() { return built.plan; }

    Status check() const { return checkPlan(built.plan, in, built.out, shape, budget, policy); }

    // The `nth` task of a kind.
    Task& find(TaskKind kind, int nth = 0)
    {
        for (Task& task : built.plan.tasks) {
            if (task.kind == kind && nth-- == 0)
                return task;
        }
        qFatal("no such task");
    }

    void erase(TaskKind kind, int nth = 0)
    {
        const auto index = static_cast<TaskIndex>(&find(kind, nth) - built.plan.tasks.data());
        built.plan.tasks.erase(built.plan.tasks.begin() + index);
        // What waited for it waits for nothing now, what lies behind it moves up.
        for (Wait& wait : built.plan.waits) {
            if (!wait.isCarried() && wait.index() >= index && wait.index() > 0)
                wait = Wait::onTask(wait.index() - 1);
        }
    }
};

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

private slots:
    void correctPlansOfAllPoliciesAndOrdersPass()
    {
        for (const PolicyInfo& info : policyTable()) {
            if (!info.built)
                continue;
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
        bench.build(1);
        Task& finish = bench.find(TaskKind::FinishGradient, 1); // of the upper block
        Task& backward = bench.find(TaskKind::Backward, 2);     // of the lower one
        finish.group = backward.group;
        std::swap(finish, bench.find(TaskKind::Backward, 2));
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
        bench.in.unfinished = {leftRunning(TaskKind::FetchWeights, Lane::Disk, GroupId{0})};
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
            [](Carry& carry) {
                holdSlot(carry, {GroupId{1}, 7});
            },
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
        bench.in.unfinished = {leftRunning(TaskKind::WriteToDisk, Lane::Disk, GroupId{})};
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

QTEST_APPLESS_MAIN(TestPlanCheck)
#include "tst_plan_check.moc"
