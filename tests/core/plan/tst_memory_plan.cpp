// Bytes by tier, kind and group, against sums written out by hand.

#include "core/plan/memory_plan.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <tuple>

using namespace mr;
using namespace mr::test;

namespace {

constexpr std::size_t kN = kGroupElements;
constexpr std::size_t kGroups = 4;
constexpr std::size_t kAll = kN * kGroups;

// Two blocks; sizes of which no sum equals another.
ModelShape shapeWithBytes()
{
    ModelShape shape = smallShape(2);
    shape.boundaryBytes = 1000;
    shape.savedBytesPerBlock = 7000;
    shape.backwardScratchBytes = 300;
    shape.headScratchBytes = 50;
    shape.headProductBytes = 11;
    shape.batchBytes = 40;
    shape.constantBytes = 13;
    shape.scalarBytes = 17;
    return shape;
}

MemoryPlan planned(const OffloadPolicy& policy, const StepSpec& spec)
{
    Result<MemoryPlan> plan = planMemory(spec, shapeWithBytes(), {}, {}, policy);
    return plan.ok() ? std::move(plan).value() : MemoryPlan{};
}

} // namespace

class TestMemoryPlan : public QObject
{
    Q_OBJECT

private slots:
    void residentHoldsAllStateOnTheDevice()
    {
        const MemoryPlan plan = planned(policyOf("resident"), specOf(1, 1));

        // Weights 2, low plane 2, moments 8, accumulator 4, finished gradient 2.
        const std::size_t state = 18 * kAll;
        const std::size_t work = 4 * 1000 + 7000 + 300 + 50 + 11 + 2 * 40 + 13 + 17;
        QCOMPARE(plan.bytes(Tier::Device), state + work);
        QCOMPARE(plan.bytes(Tier::PinnedHost), kStagingBytes + 40 + 17);
        QCOMPARE(plan.bytes(Tier::Disk), std::size_t{0});
    }

    void zeroOffloadHoldsTwelveBytesAndAGradientOnTheHost()
    {
        const MemoryPlan plan = planned(policyOf("zero-offload"), specOf(1, 1));

        QCOMPARE(plan.bytes(Tier::PinnedHost), 14 * kAll + kStagingBytes + 40 + 17);
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::Weights), 2 * kAll);
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::Accumulators), 4 * kAll);
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::Gradients), 2 * kAll);
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::LowPlane), std::size_t{0});
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::FirstMoments), std::size_t{0});
    }

    void fullPrecisionHasJoinedWeightsAndNoRoundedGradient()
    {
        StepSpec spec = specOf(1, 1);
        spec.precision = Precision::F32;

        const MemoryPlan resident = planned(policyOf("resident"), spec);
        const MemoryPlan offload = planned(policyOf("zero-offload"), spec);

        QCOMPARE(resident.bytes(Tier::Device, MemoryUse::Weights), 4 * kAll);
        QCOMPARE(resident.bytes(Tier::Device, MemoryUse::HighPlane), 2 * kAll);
        QCOMPARE(resident.bytes(Tier::Device, MemoryUse::Gradients), std::size_t{0});
        QCOMPARE(offload.bytes(Tier::Device, MemoryUse::HighPlane), std::size_t{0});
        QCOMPARE(offload.bytes(Tier::PinnedHost, MemoryUse::HighPlane), 2 * kAll);
        QCOMPARE(offload.bytes(Tier::PinnedHost, MemoryUse::Gradients), 4 * kAll);
    }

    void byLayerKeepsBoundariesAndBatchesOfEveryMicroBatch()
    {
        const MemoryPlan micro = planned(policyOf("resident"), specOf(1, 5));
        const MemoryPlan layer = planned(policyOf("resident", "by-layer"), specOf(1, 5));

        // Outputs of the embedding and two blocks, and one gradient of the stream.
        QCOMPARE(micro.bytes(Tier::Device, MemoryUse::Boundaries), std::size_t{4 * 1000});
        QCOMPARE(layer.bytes(Tier::Device, MemoryUse::Boundaries), std::size_t{4 * 1000 * 5});
        QCOMPARE(micro.bytes(Tier::Device, MemoryUse::Batches), std::size_t{2 * 40});
        QCOMPARE(layer.bytes(Tier::Device, MemoryUse::Batches), std::size_t{5 * 40});
        QCOMPARE(micro.bytes(Tier::PinnedHost, MemoryUse::Batches), std::size_t{5 * 40});
        QCOMPARE(layer.bytes(Tier::PinnedHost, MemoryUse::Batches), std::size_t{5 * 40});
        QCOMPARE(batchBuffers(policyOf("resident", "by-layer"), 4, 5), 5);
    }

    void recomputingKeepsTheActivationsOfOneBlock()
    {
        StepSpec spec = specOf(1, 3);
        spec.recompute = false;

        const MemoryPlan micro = planned(policyOf("resident"), spec);
        const MemoryPlan layer = planned(policyOf("resident", "by-layer"), spec);
        spec.recompute = true;
        const MemoryPlan again = planned(policyOf("resident", "by-layer"), spec);

        QCOMPARE(micro.bytes(Tier::Device, MemoryUse::Activations), std::size_t{2 * 7000});
        QCOMPARE(layer.bytes(Tier::Device, MemoryUse::Activations), std::size_t{2 * 7000 * 3});
        QCOMPARE(again.bytes(Tier::Device, MemoryUse::Activations), std::size_t{7000});
    }

    void tiedHeadHasASecondAccumulatorOfTheEmbedding()
    {
        ModelShape shape = shapeWithBytes();
        shape.tiedHead = true;
        shape.secondAccumulatorElements = 1024;

        Result<MemoryPlan> plan = planMemory(specOf(1, 1), shape, {}, {}, policyOf("resident"));

        QVERIFY(plan.ok());
        int found = 0;
        for (const MemoryItem& item : plan.value().items) {
            if (item.use != MemoryUse::SecondAccumulator)
                continue;
            QCOMPARE(item.bytes, std::size_t{4 * 1024});
            QCOMPARE(item.group.value, 0);
            ++found;
        }
        QCOMPARE(found, 1);
    }

    void itemsAreSortedAndNoneIsEmpty()
    {
        const MemoryPlan plan = planned(policyOf("zero-offload"), specOf(1, 2));

        for (std::size_t i = 0; i < plan.items.size(); ++i) {
            QVERIFY(plan.items[i].bytes > 0);
            QVERIFY(!name(plan.items[i].use).empty());
            if (i == 0)
                continue;
            const MemoryItem& before = plan.items[i - 1];
            const MemoryItem& item = plan.items[i];
            QVERIFY(std::tie(before.tier, before.use, before.group) <
                    std::tie(item.tier, item.use, item.group));
        }
    }

    void inferenceHoldsWeightsAndOneMicroBatch()
    {
        const MemoryPlan plan = planInferenceMemory(specOf(1, 1), shapeWithBytes());

        QCOMPARE(
            plan.bytes(Tier::Device), 2 * kAll + 2 * 1000 + 7000 + 300 + 50 + 2 * 40 + 13 + 17);
        QCOMPARE(plan.bytes(Tier::PinnedHost), kStagingBytes + 40 + 17);
    }

    void modelsWithoutAnEmbeddingAndAHeadAreRefused()
    {
        ModelShape shape;
        shape.groups.resize(1);

        const Result<MemoryPlan> plan =
            planMemory(specOf(1, 1), shape, {}, {}, policyOf("resident"));

        QVERIFY(!plan.ok());
        QVERIFY(plan.status().kind() == ErrorKind::InvalidArgument);
    }
};

QTEST_APPLESS_MAIN(TestMemoryPlan)
#include "tst_memory_plan.moc"
