// Bytes by tier, kind and group, against sums written out by hand.

#include "core/plan/memory_plan.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace mr::test::tst_memory_plan {

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
    shape.headInferenceBytes = 19;
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

// Three blocks; no two groups have the same size and the head ends inside a cut.
constexpr std::array<std::int64_t, 5> kSizes = {8192, 4096, 5120, 3072, 6656};
constexpr std::array<std::int64_t, 5> kNothing = {0, 0, 0, 0, 0};
// Half of each group; the next group makes up the remainder of a cut. Wanted in all: 4096, 6144,
// 8704, 10240, 13568.
constexpr std::array<std::int64_t, 5> kHalf = {4096, 2048, 3072, 1024, 3072};
constexpr std::int64_t kSum = 27136;

ModelShape unevenShape()
{
    ModelShape shape = smallShape(3);
    for (std::size_t g = 0; g < kSizes.size(); ++g)
        shape.groups[g].elements = kSizes[g];
    return shape;
}

// A policy, a step, and the figures that follow from them, by hand.
struct Row {
    const char* name;
    std::map<std::string, std::string> options;
    int microBatches;
    bool full;                             // fp32
    std::array<std::int64_t, 5> hostFirst; // the device updates those before
    int sumSlots;
    int finishedSlots;
    std::int64_t stateTile;
    std::int64_t landing; // elements
};

// One micro-batch makes the whole gradient, so backward stores it rounded.
bool isOnce(const Row& row)
{
    return !row.full && row.microBatches == 1;
}

// Elements of the three blocks that are on the device's or the host's side of their cuts.
std::int64_t blocksBefore(const Row& row)
{
    return row.hostFirst[1] + row.hostFirst[2] + row.hostFirst[3];
}

std::int64_t largestBlockOnHost(const Row& row)
{
    std::int64_t most = 0;
    for (const std::size_t g : {1U, 2U, 3U})
        most = std::max(most, kSizes[g] - row.hostFirst[g]);
    return most;
}

bool isCompact(const Row& row)
{
    return row.options.count("state") > 0;
}

// One plane of the state of `elements`: 1 byte an element, and for moments 4 a group of 32.
std::int64_t lowBytes(const Row& row, std::int64_t elements)
{
    return isCompact(row) ? elements : 2 * elements;
}

std::int64_t momentBytes(const Row& row, std::int64_t elements)
{
    return isCompact(row) ? elements + 4 * (elements / 32) : 4 * elements;
}

// Bytes on the device by use.
std::map<MemoryUse, std::int64_t> deviceBytes(const Row& row)
{
    const bool resident = std::string_view(row.name) == "resident";
    const std::int64_t ends = 8192 + 6656;
    const std::int64_t blocks = 4096 + 5120 + 3072;
    std::map<MemoryUse, std::int64_t> bytes;
    bytes[MemoryUse::Weights] = (row.full ? 4 : 2) * kSum;
    bytes[MemoryUse::HighPlane] = resident && row.full ? 2 * kSum : 0;
    bytes[MemoryUse::LowPlane] = resident ? lowBytes(row, kSum) : 0;
    bytes[MemoryUse::FirstMoments] = resident ? momentBytes(row, kSum) : 0;
    bytes[MemoryUse::SecondMoments] = resident ? momentBytes(row, kSum) : 0;
    bytes[MemoryUse::Accumulators] =
        (isOnce(row) ? 2 : 4) *
        (ends + (row.sumSlots > 0 ? row.sumSlots * std::int64_t{5120} : blocks));
    const std::int64_t turns = blocksBefore(row) + row.finishedSlots * largestBlockOnHost(row);
    const std::int64_t finished = row.finishedSlots > 0 ? turns : isOnce(row) ? 0 : blocks;
    bytes[MemoryUse::Gradients] = row.full ? 0 : 2 * ((isOnce(row) ? 0 : ends) + finished);
    bytes[MemoryUse::StateSlots] = isCompact(row) ? 3 * (row.stateTile * 3 + row.stateTile / 4)
                                                  : 3 * row.stateTile * (row.full ? 12 : 10);
    bytes[MemoryUse::UploadLanding] = 4 * row.landing;
    return bytes;
}

std::map<MemoryUse, std::int64_t> hostBytes(const Row& row)
{
    const bool resident = std::string_view(row.name) == "resident";
    const std::int64_t before =
        std::accumulate(row.hostFirst.begin(), row.hostFirst.end(), std::int64_t{0});
    std::map<MemoryUse, std::int64_t> bytes;
    bytes[MemoryUse::HighPlane] = resident ? 0 : 2 * kSum;
    bytes[MemoryUse::LowPlane] = resident ? 0 : lowBytes(row, kSum);
    bytes[MemoryUse::FirstMoments] = resident ? 0 : momentBytes(row, kSum);
    bytes[MemoryUse::SecondMoments] = resident ? 0 : momentBytes(row, kSum);
    bytes[MemoryUse::Gradients] = (row.full ? 4 : 2) * (kSum - before);
    bytes[MemoryUse::Staging] = static_cast<std::int64_t>(kStagingBytes);
    return bytes;
}

const std::vector<Row>& rows()
{
    using Options = std::map<std::string, std::string>;
    const Options micro = {{"order", "by-microbatch"}};
    const Options layer = {{"order", "by-layer"}};
    const Options half = {{"device-share", "0.5"}};
    const Options halfByLayer = {{"device-share", "0.5"}, {"order", "by-layer"}, {"tile", "8KiB"}};
    const Options compact = {{"state", "compact"}};
    const Options halfCompact = {{"device-share", "0.5"}, {"state", "compact"}};
    static const std::vector<Row> all = {
        {"resident", compact, 1, false, kSizes, 0, 0, 0, 0},
        {"zero-offload", compact, 3, false, kNothing, 0, 2, 0, 0},
        {"deep-optimizer-states", halfCompact, 1, false, kHalf, 1, 2, 4096, 0},
        {"resident", micro, 1, false, kSizes, 0, 0, 0, 0},
        {"resident", micro, 3, false, kSizes, 0, 0, 0, 0},
        {"resident", layer, 3, false, kSizes, 1, 0, 0, 0},
        {"resident", micro, 1, true, kSizes, 0, 0, 0, 0},
        {"resident", layer, 3, true, kSizes, 0, 0, 0, 0},
        {"zero-offload", micro, 1, false, kNothing, 2, 0, 0, 0},
        {"zero-offload", micro, 3, false, kNothing, 0, 2, 0, 0},
        {"zero-offload", layer, 3, false, kNothing, 1, 2, 0, 0},
        {"zero-offload", {{"order", "by-layer-flip"}}, 3, false, kNothing, 1, 2, 0, 0},
        {"zero-offload", {{"late", "0.5"}}, 1, false, kNothing, 2, 0, 0, 0},
        {"zero-offload", micro, 1, true, kNothing, 2, 0, 0, 8192},
        {"zero-offload", micro, 3, true, kNothing, 0, 0, 0, 8192},
        {"zero-offload", {{"order", "by-layer"}, {"tile", "8KiB"}}, 3, true, kNothing, 2, 0, 0,
            4096},
        {"deep-optimizer-states", half, 1, false, kHalf, 1, 2, 4096, 0},
        {"deep-optimizer-states", half, 3, false, kHalf, 0, 2, 4096, 0},
        {"deep-optimizer-states", halfByLayer, 3, false, kHalf, 1, 2, 1024, 0},
        {"deep-optimizer-states", half, 1, true, kHalf, 0, 0, 4096, 4096},
        {"deep-optimizer-states", halfByLayer, 3, true, kHalf, 0, 0, 1024, 4096},
        {"deep-optimizer-states", {{"device-share", "1"}}, 1, false, kSizes, 0, 0, 8192, 0},
        {"deep-optimizer-states", {{"device-share", "1"}}, 1, true, kSizes, 0, 0, 8192, 0},
        {"deep-optimizer-states", {{"device-share", "0"}}, 1, false, kNothing, 2, 0, 0, 0},
        {"deep-optimizer-states", {{"device-share", "0"}}, 1, true, kNothing, 2, 0, 0, 8192},
    };
    return all;
}

// The most sums of blocks that are needed at the same time, if tasks ran in the order of the plan:
// from the first backward that writes one to the last task that reads it.
int mostLiveSums(const StepPlan& plan, int layers, bool sumIsGradient)
{
    std::vector<TaskIndex> first(static_cast<std::size_t>(layers), 0);
    std::vector<TaskIndex> last(static_cast<std::size_t>(layers), 0);
    for (TaskIndex i = 0; i < plan.tasks.size(); ++i) {
        const Task& task = plan.tasks[i];
        const bool reads = task.kind == TaskKind::FinishGradient ||
                           (sumIsGradient && (task.kind == TaskKind::SendGradient ||
                                                 task.kind == TaskKind::NormPart ||
                                                 task.kind == TaskKind::UpdateOnDevice));
        const auto g = static_cast<std::size_t>(std::max(0, task.group.value));
        if (task.kind == TaskKind::Backward && first[g] == 0)
            first[g] = i;
        else if (reads)
            last[g] = i;
    }
    int most = 0;
    for (int g = 1; g + 1 < layers; ++g) {
        int live = 0;
        for (int other = 1; other + 1 < layers; ++other) {
            const TaskIndex at = first[static_cast<std::size_t>(g)];
            live += first[static_cast<std::size_t>(other)] <= at &&
                            at < last[static_cast<std::size_t>(other)]
                        ? 1
                        : 0;
        }
        most = std::max(most, live);
    }
    return most;
}

} // namespace

class TestMemoryPlan : public QObject
{
    Q_OBJECT

private:
    // Every use of the tier, and nothing else.
    static void compareUses(
        const MemoryPlan& plan, Tier tier, const std::map<MemoryUse, std::int64_t>& expected)
    {
        std::int64_t sum = 0;
        for (const auto& [use, bytes] : expected) {
            const auto found = static_cast<std::int64_t>(plan.bytes(tier, use));
            QVERIFY2(found == bytes, (std::string(name(use)) + ": " + std::to_string(found) +
                                         " bytes, not " + std::to_string(bytes))
                                         .c_str());
            sum += bytes;
        }
        QCOMPARE(static_cast<std::int64_t>(plan.bytes(tier)), sum);
    }

private Q_SLOTS:
    void residentHoldsAllStateOnTheDevice()
    {
        const MemoryPlan plan = planned(policyOf("resident"), specOf(1, 1));

        // Weights 2, low plane 2, moments 8, gradient 2.
        const std::size_t state = 14 * kAll;
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
        // Gradients of embedding and head, and two slots for those of the blocks.
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::Accumulators), 2 * kAll);
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::Gradients), std::size_t{0});
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::LowPlane), std::size_t{0});
        QCOMPARE(plan.bytes(Tier::Device, MemoryUse::FirstMoments), std::size_t{0});
    }

    // The device keeps three activations for each micro-batch; codes wait in place of the others,
    // of both blocks on the device, or of two in turn and the one that is saved.
    void codesOfInputsWaitInPlaceOfThem()
    {
        ModelShape shape = shapeWithBytes();
        shape.keptBoundaryBytes = 600;
        const auto plannedFor = [&](const OffloadPolicy& policy, Recompute how) {
            StepSpec spec = specOf(1, 1);
            spec.recompute = how;
            return planMemory(spec, shape, {}, {}, policy);
        };
        const MemoryPlan resident = plannedFor(policyOf("resident"), Recompute::Block).value();
        const MemoryPlan streamed = plannedFor(policyOf("streamed"), Recompute::Block).value();

        QCOMPARE(resident.bytes(Tier::Device, MemoryUse::Boundaries), std::size_t{3 * 1000});
        QCOMPARE(resident.bytes(Tier::Device, MemoryUse::InputCodes), std::size_t{2 * 600});
        QCOMPARE(streamed.bytes(Tier::Device, MemoryUse::Boundaries), std::size_t{3 * 1000});
        QCOMPARE(streamed.bytes(Tier::Device, MemoryUse::InputCodes), std::size_t{2 * 600});
        QCOMPARE(streamed.bytes(Tier::PinnedHost, MemoryUse::Boundaries), std::size_t{600});
        QCOMPARE(name(MemoryUse::InputCodes), std::string_view("input codes"));
        for (const Recompute how : {Recompute::None, Recompute::Cheap})
            QVERIFY(plannedFor(policyOf("resident"), how).status().kind() ==
                    ErrorKind::InvalidArgument);
        const OffloadPolicy keeps = policyWith("streamed", {{"activations-on-host", "1"}});
        QVERIFY(!plannedFor(keeps, Recompute::Block).ok());
        shape.keptBoundaryBytes = 0;
        QVERIFY(plannedFor(keeps, Recompute::Block).ok());
    }

    void compactStateTakesFiveAndAQuarterBytesWhereverItLives()
    {
        constexpr std::size_t kState = 21 * kAll / 4;
        const auto stateOf = [](const MemoryPlan& plan, Tier tier) {
            std::size_t bytes = tier == Tier::Device ? plan.bytes(tier, MemoryUse::Weights) : 0;
            for (const MemoryUse use : {MemoryUse::HighPlane, MemoryUse::LowPlane,
                     MemoryUse::FirstMoments, MemoryUse::SecondMoments})
                bytes += plan.bytes(tier, use);
            return bytes;
        };

        const MemoryPlan resident =
            planned(policyWith("resident", {{"state", "compact"}}), specOf(1, 1));
        const MemoryPlan offload =
            planned(policyWith("zero-offload", {{"state", "compact"}}), specOf(1, 1));

        QVERIFY(resident.stateCodec == StateCodec::Compact);
        QCOMPARE(stateOf(resident, Tier::Device), kState);
        QCOMPARE(stateOf(offload, Tier::PinnedHost), kState);
        QCOMPARE(offload.bytes(Tier::PinnedHost), kState + 2 * kAll + kStagingBytes + 40 + 17);
        QCOMPARE(resident.bytes(Tier::PinnedHost), kStagingBytes + 40 + 17);
    }

    // Only the host's state is smaller: the device keeps plain state of its columns.
    void withWindowsCompactStateIsTheHosts()
    {
        const ModelShape shape = columnShape(2);
        for (const char* name : {"zenflow", "zero-offload-dpu"}) {
            const auto planOf = [&](const char* state) {
                return planMemory(specOf(1, 1), shape, {}, {}, policyWith(name, {{"state", state}}))
                    .value();
            };
            const MemoryPlan plain = planOf("fp32");
            const MemoryPlan compact = planOf("compact");

            QCOMPARE(compact.bytes(Tier::Device), plain.bytes(Tier::Device));
            QCOMPARE(
                compact.bytes(Tier::PinnedHost), plain.bytes(Tier::PinnedHost) - 27 * kAll / 4);
        }
    }

    // Rows of 48 and of 10: two and 16 of them are whole groups.
    void tilesOfAWindowPartNoGroupOfCompactState()
    {
        const ModelShape shape = columnShape(2);
        const auto tilesOf = [&](const char* state) {
            return planMemory(specOf(1, 1), shape, {}, {},
                policyWith("zenflow", {{"state", state}, {"tile", "2KiB"}}))
                .value()
                .window.tiles;
        };
        const auto isWhole = [](const ComplementTile& tile) {
            return tile.firstElement % kScaledElements == 0;
        };

        const std::vector<ComplementTile> compact = tilesOf("compact");
        const std::vector<ComplementTile> plain = tilesOf("fp32");

        QVERIFY(std::all_of(compact.begin(), compact.end(), isWhole));
        QVERIFY(!std::all_of(plain.begin(), plain.end(), isWhole));
        const auto elements = [](const std::vector<ComplementTile>& tiles) {
            std::int64_t sum = 0;
            for (const ComplementTile& tile : tiles)
                sum += tile.elementCount;
            return sum;
        };
        QCOMPARE(elements(compact), elements(plain));
    }

    void compactStateNeedsBf16()
    {
        StepSpec spec = specOf(1, 1);
        spec.precision = Precision::F32;

        const Result<MemoryPlan> plan = planMemory(
            spec, shapeWithBytes(), {}, {}, policyWith("resident", {{"state", "compact"}}));

        QVERIFY(!plan.ok());
        QVERIFY(plan.status().kind() == ErrorKind::InvalidArgument);
        QVERIFY(plan.status().message().find("state=compact needs precision bf16") !=
                std::string::npos);
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
        spec.recompute = Recompute::None;

        const MemoryPlan micro = planned(policyOf("resident"), spec);
        const MemoryPlan layer = planned(policyOf("resident", "by-layer"), spec);
        spec.recompute = Recompute::Block;
        const MemoryPlan again = planned(policyOf("resident", "by-layer"), spec);

        QCOMPARE(micro.bytes(Tier::Device, MemoryUse::Activations), std::size_t{2 * 7000});
        QCOMPARE(layer.bytes(Tier::Device, MemoryUse::Activations), std::size_t{2 * 7000 * 3});
        QCOMPARE(again.bytes(Tier::Device, MemoryUse::Activations), std::size_t{7000});
    }

    void allBlocksShareWhatCheapRecomputationMakesAgain()
    {
        ModelShape shape = shapeWithBytes();
        shape.remadeBytesPerBlock = 2400;
        StepSpec spec = specOf(1, 3);
        spec.recompute = Recompute::Cheap;
        const auto activations = [&](const char* policy, const char* order) {
            Result<MemoryPlan> plan =
                planMemory(spec, shape, endless(), {}, policyOf(policy, order));
            return plan.ok() ? plan.value().bytes(Tier::Device, MemoryUse::Activations) : 0;
        };

        QCOMPARE(activations("resident", "by-microbatch"), std::size_t{2 * 4600 + 2400});
        QCOMPARE(activations("resident", "by-layer"), std::size_t{2 * 3 * 4600 + 2400});
        QCOMPARE(activations("streamed", "by-layer"), std::size_t{2 * 3 * 4600 + 2400});
        shape = smallShape(0); // no block makes any
        shape.savedBytesPerBlock = 7000;
        shape.remadeBytesPerBlock = 2400;
        QCOMPARE(activations("resident", "by-microbatch"), std::size_t{0});
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

    // Two gradients are added of a tied embedding, and of a head that has several products.
    void onlyGradientsThatAreWholeAtOnceAreStoredRounded()
    {
        const auto sumOf = [](const ModelShape& shape, int microBatches, std::int32_t group) {
            const MemoryPlan plan =
                planMemory(specOf(1, microBatches), shape, {}, {}, policyOf("resident")).value();
            std::size_t bytes = 0;
            for (const MemoryItem& item : plan.items)
                if (item.use == MemoryUse::Accumulators && item.group.value == group)
                    bytes = item.bytes;
            return bytes;
        };
        ModelShape shape = smallShape(2);
        QCOMPARE(sumOf(shape, 1, 0), 2 * kN);
        QCOMPARE(sumOf(shape, 1, 3), 2 * kN);
        QCOMPARE(sumOf(shape, 2, 3), 4 * kN);
        shape.headProducts = 2;
        QCOMPARE(sumOf(shape, 1, 0), 2 * kN);
        QCOMPARE(sumOf(shape, 1, 3), 4 * kN);
        shape.tiedHead = true;
        QCOMPARE(sumOf(shape, 1, 0), 4 * kN);
        QCOMPARE(sumOf(shape, 1, 2), 2 * kN);
        QCOMPARE(sumOf(shape, 1, 3), 2 * kN);
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
            plan.bytes(Tier::Device), 2 * kAll + 2 * 1000 + 7000 + 300 + 19 + 2 * 40 + 13 + 17);
        QCOMPARE(plan.bytes(Tier::PinnedHost), kStagingBytes + 40 + 17);
    }

    void everyByteFollowsFromPolicyOrderAndPrecision_data()
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < rows().size(); ++i) {
            const Row& row = rows()[i];
            std::string tag = std::string(row.name) + (row.full ? " fp32 " : " bf16 ") +
                              std::to_string(row.microBatches);
            for (const auto& [option, value] : row.options)
                tag += " " + option + "=" + value;
            QTest::addRow("%s", tag.c_str()) << static_cast<int>(i);
        }
    }

    void everyByteFollowsFromPolicyOrderAndPrecision()
    {
        QFETCH(const int, index);
        const Row& row = rows()[static_cast<std::size_t>(index)];
        StepSpec spec = specOf(1, row.microBatches);
        spec.precision = row.full ? Precision::F32 : Precision::BF16;

        Result<MemoryPlan> made =
            planMemory(spec, unevenShape(), endless(), {}, policyWith(row.name, row.options));

        QVERIFY2(made.ok(), made.status().message().c_str());
        const MemoryPlan& plan = made.value();
        QCOMPARE(plan.gradients.sumSlots, row.sumSlots);
        QCOMPARE(plan.gradients.finishedSlots, row.finishedSlots);
        QCOMPARE(plan.stateTileElements, row.stateTile);
        QVERIFY(std::equal(plan.hostFirst.begin(), plan.hostFirst.end(), row.hostFirst.begin(),
            row.hostFirst.end()));
        compareUses(plan, Tier::Device, deviceBytes(row));
        compareUses(plan, Tier::PinnedHost, hostBytes(row));
    }

    // The device has 4 bytes for every summed element, and packed gradients that wait for the norm.
    // The host has two banks of sums that were sent, and nothing to add.
    void sumsOnTheDeviceTakeTheirBytesThere()
    {
        const ModelShape shape = columnShape(3);
        const auto planOf = [&](const char* interval, const char* site) {
            return planMemory(specOf(1, 1), shape, endless(), {},
                policyWith("zenflow",
                    {{"interval", interval}, {"urgent", "0.25"}, {"accumulate-on", site}}))
                .value();
        };
        constexpr std::size_t kMatrix = 60 * 36; // the host has 36 of 48 columns
        constexpr std::size_t kComplement = 5 * kMatrix + 3 * 96 * 8;

        const MemoryPlan host = planOf("4", "host");
        const MemoryPlan device = planOf("4", "device");

        QCOMPARE(device.bytes(Tier::Device, MemoryUse::WindowSums), 4 * kComplement);
        QCOMPARE(device.bytes(Tier::Device, MemoryUse::PackedGradients), 2 * kComplement);
        QCOMPARE(device.bytes(Tier::PinnedHost, MemoryUse::WindowSums), 2 * 2 * kComplement);
        QCOMPARE(device.bytes(Tier::PinnedHost, MemoryUse::Gradients), std::size_t{0});
        QCOMPARE(host.bytes(Tier::Device, MemoryUse::WindowSums), std::size_t{0});
        QCOMPARE(host.bytes(Tier::PinnedHost, MemoryUse::WindowSums), 2 * 4 * kComplement);
        for (const Tier tier : {Tier::Device, Tier::PinnedHost})
            QCOMPARE(planOf("1", "device").bytes(tier), planOf("1", "host").bytes(tier));
    }

    void whatBlocksShareIsOfTheRunAndTheRestOfItsGroup()
    {
        Result<MemoryPlan> made = planMemory(specOf(1, 1), unevenShape(), endless(), {},
            policyWith("deep-optimizer-states", {{"device-share", "0.5"}}));

        QVERIFY(made.ok());
        for (const MemoryItem& item : made.value().items) {
            const bool ofABlock = item.group.value >= 1 && item.group.value <= 3;
            if (item.tier == Tier::Device && ofABlock)
                QVERIFY(item.use == MemoryUse::Weights || item.use == MemoryUse::Gradients);
            if (item.use == MemoryUse::StateSlots)
                QCOMPARE(item.group.value, -1);
            if (item.use == MemoryUse::Accumulators && item.group.value < 0)
                QCOMPARE(item.bytes, std::size_t{2 * 5120});
        }
    }

    void aLoneBlockSharesNothing()
    {
        for (const char* name : {"resident", "zero-offload"}) {
            Result<MemoryPlan> made =
                planMemory(specOf(1, 1), smallShape(1), endless(), {}, policyOf(name));

            QVERIFY(made.ok());
            QCOMPARE(made.value().gradients.sumSlots, 0);
            QCOMPARE(made.value().gradients.finishedSlots, 0);
            QCOMPARE(made.value().bytes(Tier::Device, MemoryUse::Accumulators), 2 * 3 * kN);
        }
    }

    // Derived from the plan: one slot serves if no two sums are needed at the same time.
    void sumsShareSlotsExactlyWhereTheirTimesAreApart()
    {
        int shared = 0;
        int apart = 0;
        for (const Row& row : rows()) {
            StepSpec spec = specOf(1, row.microBatches);
            spec.precision = row.full ? Precision::F32 : Precision::BF16;
            const ModelShape shape = unevenShape();
            const OffloadPolicy policy = policyWith(row.name, row.options);
            Result<BuiltStep> built = buildPlan(spec, {}, shape, endless(), {}, policy);
            Result<MemoryPlan> memory = planMemory(spec, shape, endless(), {}, policy);
            QVERIFY(built.ok() && memory.ok());

            const bool sumIsGradient = row.full || (isOnce(row) && row.finishedSlots == 0);
            const int most = mostLiveSums(built.value().plan, 5, sumIsGradient);
            const bool mayShare = most == 1;

            QCOMPARE(memory.value().gradients.sumSlots > 0, mayShare);
            QCOMPARE(built.value().plan.gradients.sumSlots, memory.value().gradients.sumSlots);
            QCOMPARE(
                built.value().plan.gradients.finishedSlots, memory.value().gradients.finishedSlots);
            ++(mayShare ? shared : apart);
        }
        QVERIFY(shared > 5 && apart > 5);
    }

    void modelsWithoutAnEmbeddingAndAHeadAreRefused()
    {
        ModelShape shape;
        shape.groups.resize(1);

        Result<MemoryPlan> plan = planMemory(specOf(1, 1), shape, {}, {}, policyOf("resident"));

        QVERIFY(!plan.ok());
        QVERIFY(plan.status().kind() == ErrorKind::InvalidArgument);
    }
};

MR_TEST(TestMemoryPlan)

} // namespace mr::test::tst_memory_plan

#include "tst_memory_plan.moc"
