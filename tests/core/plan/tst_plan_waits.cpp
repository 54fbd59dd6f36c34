// Every single wait of a plan is needed: without it the checker refuses the plan.

#include "support/test_room.h"
#include "tests/core/plan/plan_bench.h"

#include <QTest>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_plan_waits {

namespace {

bool isAny(const Task& /*task*/)
{
    return true;
}

// Weights that stream, of which a share is updated on the device.
std::vector<OffloadPolicy> streamedShares(std::map<std::string, std::string> options)
{
    std::vector<OffloadPolicy> policies;
    for (const char* share : {"0.25", "1"}) {
        options["device-share"] = share;
        policies.push_back(policyWith("streamed", options));
    }
    options["device-share"] = "0.5";
    options["boundary"] = "device";
    options["buffers"] = "1";
    policies.push_back(policyWith("streamed", options));
    options["weights-on-device"] = "0.5";
    options["state-on-device"] = "0.25";
    policies.push_back(policyWith("streamed", options));
    return policies;
}

// Policies and options that plan differently.
std::vector<OffloadPolicy> policiesToMutate(const std::string& order)
{
    std::vector<OffloadPolicy> policies;
    policies.push_back(policyOf("resident", order));
    for (const char* late : {"0", "0.5", "1"}) {
        const std::map<std::string, std::string> common = {
            {"order", order}, {"tile", "2KiB"}, {"late", late}};
        policies.push_back(policyWith("zero-offload", common));
        for (const char* share : {"0.25", "0.75", "1"}) {
            std::map<std::string, std::string> options = common;
            options["device-share"] = share;
            policies.push_back(policyWith("deep-optimizer-states", options));
        }
        for (OffloadPolicy& policy : streamedShares(common))
            policies.push_back(std::move(policy));
        for (const char* share : {"0.5", "1"}) { // share of boundaries on disk
            std::map<std::string, std::string> options = common;
            options["boundaries-on-disk"] = share;
            for (const char* state : {"0", "1"}) {
                options["disk-share"] = state;
                policies.push_back(policyWith("ssd-vertical", options));
            }
            options.insert({{"weights-on-disk", "1"}, {"gradients-on-disk", "1"},
                {"activations-on-host", "0.5"}});
            policies.push_back(policyWith("ssd-vertical", options));
        }
        for (const char* boundary : {"host", "device"}) {
            std::map<std::string, std::string> options = common;
            options["boundary"] = boundary;
            policies.push_back(policyWith("streamed", options));
            options["buffers"] = "1";
            policies.push_back(policyWith("streamed", options));
            options["weights-on-device"] = "0.5";
            options["state-on-device"] = "0.25";
            policies.push_back(policyWith("streamed", options));
        }
        {
            std::map<std::string, std::string> options = common;
            options.insert({{"disk-groups", "vocabulary"}, {"disk-share", "0.5"}});
            policies.push_back(policyWith("ssd-vertical", options));
        }
        for (const char* gradients : {"0", "1"}) {
            std::map<std::string, std::string> options = common;
            options.insert({{"weights-on-disk", "1"}, {"gradients-on-disk", gradients}});
            policies.push_back(policyWith("ssd-vertical", options));
            options["buffers"] = "1";
            options["device-share"] = "0.25";
            policies.push_back(policyWith("ssd-vertical", options));
        }
    }
    return policies;
}

// Policies with windows. Plans differ from step to step of a window.
std::vector<OffloadPolicy> windowPolicies(const std::string& order, const std::string& disk)
{
    std::vector<OffloadPolicy> policies;
    const std::map<std::string, std::string> common = {
        {"order", order}, {"tile", "2KiB"}, {"warmup", "1"}, {"disk-share", disk}};
    policies.push_back(policyWith("zero-offload-dpu", common));
    for (const char* interval : {"1", "3"}) {
        for (const char* overlap : {"on", "off"}) {
            for (const char* urgent : {"0", "0.25", "1"}) {
                std::map<std::string, std::string> options = common;
                options["interval"] = interval;
                options["overlap"] = overlap;
                options["urgent"] = urgent;
                options["select"] = "6";
                policies.push_back(policyWith("zenflow", options));
                options["accumulate-on"] = "device";
                policies.push_back(policyWith("zenflow", options));
            }
        }
    }
    return policies;
}

} // namespace

#define EVERY_WAIT_IS_NEEDED(bench)                                                                \
    do {                                                                                           \
        const Status status = (bench).check();                                                     \
        QVERIFY2(status.ok(), status.message().c_str());                                           \
        const std::string needless = needlessWaits(bench, isAny);                                  \
        QVERIFY2(needless.empty(), needless.c_str());                                              \
    } while (false)

class TestPlanWaits : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // The builder writes no wait that another one implies, so none may be missed unnoticed.
    void everySingleWaitOfAStepIsNeeded_data()
    {
        QTest::addColumn<QString>("order");
        QTest::addColumn<bool>("full");
        QTest::addColumn<bool>("tied");
        for (const char* order : {"by-microbatch", "by-layer", "by-layer-flip"}) {
            for (const bool tied : {false, true}) {
                const bool full = tied; // the two have nothing to do with each other
                QTest::addRow("%s %s %s", order, full ? "fp32" : "bf16", tied ? "tied" : "")
                    << QString::fromUtf8(order) << full << tied;
            }
        }
    }

    void everySingleWaitOfAStepIsNeeded()
    {
        QFETCH(const QString, order);
        QFETCH(const bool, full);
        QFETCH(const bool, tied);
        for (OffloadPolicy& policy : policiesToMutate(order.toStdString())) {
            Bench bench;
            bench.shape = smallShape(4);
            bench.shape.tiedHead = tied;
            bench.precision = full ? Precision::F32 : Precision::BF16;
            bench.policy = std::move(policy);
            for (const double clip : {1.0, 0.0}) { // after the norm; each after its own gradient
                for (const int microBatches : {1, 3}) {
                    bench.in = carryOf(6);
                    for (int step = 0; step < 2; ++step) { // the second makes late parts
                        bench.build(microBatches, clip);
                        EVERY_WAIT_IS_NEEDED(bench);
                        bench.in = bench.built.out;
                    }
                }
            }
        }
    }

    void everySingleWaitOfAWindowIsNeeded_data()
    {
        QTest::addColumn<QString>("order");
        QTest::addColumn<bool>("full");
        QTest::addColumn<bool>("tied");
        QTest::addColumn<QString>("disk");
        for (const char* order : {"by-microbatch", "by-layer", "by-layer-flip"})
            for (const bool tied : {false, true})
                for (const char* disk : {"0", "0.4", "1"}) {
                    const bool full = tied;
                    QTest::addRow("%s %s %s, %s on disk", order, full ? "fp32" : "bf16",
                        tied ? "tied" : "", disk)
                        << QString::fromUtf8(order) << full << tied << QString::fromUtf8(disk);
                }
    }

    void everySingleWaitOfAWindowIsNeeded()
    {
        QFETCH(const QString, order);
        QFETCH(const bool, full);
        QFETCH(const bool, tied);
        QFETCH(const QString, disk);
        for (OffloadPolicy& policy : windowPolicies(order.toStdString(), disk.toStdString())) {
            Bench bench;
            bench.shape = columnShape(4);
            bench.shape.tiedHead = tied;
            bench.precision = full ? Precision::F32 : Precision::BF16;
            bench.policy = std::move(policy);
            bench.in = {};
            for (int step = 0; step < 14; ++step) { // warm-up, windows, a selection
                bench.build(step % 2 == 0 ? 1 : 3);
                EVERY_WAIT_IS_NEEDED(bench);
                bench.in = bench.built.out;
            }
        }
    }

    void everySingleWaitOfAFlushAndAnEvaluationIsNeeded_data()
    {
        QTest::addColumn<double>("clip");
        QTest::newRow("clipped") << 1.0;
        QTest::newRow("not clipped") << 0.0;
    }

    void everySingleWaitOfAFlushAndAnEvaluationIsNeeded()
    {
        QFETCH(const double, clip);
        for (OffloadPolicy& policy : policiesToMutate("by-microbatch")) {
            Bench bench;
            bench.policy = std::move(policy);
            bench.build(3, clip);
            bench.in = bench.built.out;
            Result<BuiltStep> flush =
                buildFlush(bench.in, bench.shape, bench.budget, {}, bench.policy);
            QVERIFY(flush.ok());
            bench.built = std::move(flush).value();
            EVERY_WAIT_IS_NEEDED(bench);

            bench.in = bench.built.out;
            Result<StepPlan> evaluation = buildEvaluation(
                specOf(7, 4), bench.in, bench.shape, bench.budget, {}, bench.policy);
            QVERIFY(evaluation.ok());
            bench.built = {std::move(evaluation).value(), bench.in};
            EVERY_WAIT_IS_NEEDED(bench);
        }
    }

    void everySingleWaitOnWhatAnEarlierStepLeftIsNeeded()
    {
        for (OffloadPolicy& policy : policiesToMutate("by-layer")) {
            Bench bench;
            bench.policy = std::move(policy);
            bench.in.unfinished = {leftRunning(TaskKind::UpdateOnHost, Lane::Host, GroupId{1}),
                leftRunning(TaskKind::FetchWeights, Lane::CopyIn, GroupId{2})};
            for (const double clip : {1.0, 0.0}) {
                bench.build(3, clip);
                EVERY_WAIT_IS_NEEDED(bench);
            }
        }
    }

    void everySingleWaitOnAVisitThatAnEarlierStepLeftIsNeeded()
    {
        for (const char* late : {"0", "1"}) {
            for (OffloadPolicy& policy : streamedShares({{"tile", "2KiB"}, {"late", late}})) {
                Bench bench;
                bench.policy = std::move(policy);
                bench.in.unfinished = {leftRunning(TaskKind::StoreState, Lane::CopyOut, GroupId{1}),
                    leftRunning(TaskKind::FetchState, Lane::CopyIn, GroupId{2})};
                for (const double clip : {1.0, 0.0}) {
                    bench.build(3, clip);
                    EVERY_WAIT_IS_NEEDED(bench);
                }
            }
        }
    }
};

MR_TEST(TestPlanWaits)

} // namespace mr::test::tst_plan_waits

#include "tst_plan_waits.moc"
