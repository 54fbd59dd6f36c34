#include "core/plan/memory_plan.h"

#include "core/plan/placement.h"
#include "core/plan/traversal.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

namespace mr {

namespace {

constexpr std::array<std::string_view, 18> kUseNames = {"weights", "high plane", "low plane",
    "first moments", "second moments", "accumulators", "second accumulator", "gradients",
    "boundaries", "activations", "workspace", "head", "head product", "batches", "constants",
    "scalars", "staging", "attention cache"};

constexpr GroupId kOfTheRun{-1};
constexpr std::size_t kPlaneBytes = 2;       // bf16 `hi`, 16-bit `lo`
constexpr std::size_t kMomentBytes = 4;      // of m and of v, fp32
constexpr std::size_t kAccumulatorBytes = 4; // fp32

std::size_t computeBytes(Precision precision)
{
    return precision == Precision::BF16 ? 2 : 4;
}

class ItemList
{
public:
    void add(Tier tier, MemoryUse use, GroupId group, std::size_t bytes)
    {
        if (bytes > 0)
            m_plan.items.push_back({tier, use, group, bytes});
    }

    MemoryPlan take()
    {
        std::sort(
            m_plan.items.begin(), m_plan.items.end(), [](const MemoryItem& a, const MemoryItem& b) {
                return std::tie(a.tier, a.use, a.group) < std::tie(b.tier, b.use, b.group);
            });
        return std::move(m_plan);
    }

private:
    MemoryPlan m_plan;
};

void addGroup(ItemList& list, GroupId group, std::int64_t elementCount,
    const GroupPlacement& placement, Precision precision)
{
    const std::int64_t cut = firstHostElement(placement.deviceShare, elementCount);
    const auto all = static_cast<std::size_t>(elementCount);
    const auto onDevice = static_cast<std::size_t>(cut);
    const auto onHost = static_cast<std::size_t>(elementCount - cut);
    const std::size_t compute = computeBytes(precision);

    list.add(Tier::Device, MemoryUse::Weights, group, compute * all);
    if (precision == Precision::F32)
        list.add(Tier::Device, MemoryUse::HighPlane, group, kPlaneBytes * onDevice);
    list.add(Tier::Device, MemoryUse::LowPlane, group, kPlaneBytes * onDevice);
    list.add(Tier::Device, MemoryUse::FirstMoments, group, kMomentBytes * onDevice);
    list.add(Tier::Device, MemoryUse::SecondMoments, group, kMomentBytes * onDevice);
    list.add(Tier::Device, MemoryUse::Accumulators, group, kAccumulatorBytes * all);
    if (precision == Precision::BF16)
        list.add(Tier::Device, MemoryUse::Gradients, group, compute * all);

    list.add(Tier::PinnedHost, MemoryUse::HighPlane, group, kPlaneBytes * onHost);
    list.add(Tier::PinnedHost, MemoryUse::LowPlane, group, kPlaneBytes * onHost);
    list.add(Tier::PinnedHost, MemoryUse::FirstMoments, group, kMomentBytes * onHost);
    list.add(Tier::PinnedHost, MemoryUse::SecondMoments, group, kMomentBytes * onHost);
    list.add(Tier::PinnedHost, MemoryUse::Gradients, group, compute * onHost);
}

// The host has a buffer for every micro-batch of the step: the engine fills them all before it
// enqueues, because it runs ahead of the copies.
void addBothSides(ItemList& list, const ModelShape& shape, int deviceBuffers, int microBatches)
{
    list.add(Tier::Device, MemoryUse::Batches, kOfTheRun,
        shape.batchBytes * static_cast<std::size_t>(deviceBuffers));
    list.add(Tier::PinnedHost, MemoryUse::Batches, kOfTheRun,
        shape.batchBytes * static_cast<std::size_t>(microBatches));
    for (const Tier tier : {Tier::Device, Tier::PinnedHost})
        list.add(tier, MemoryUse::Scalars, kOfTheRun, shape.scalarBytes);
    list.add(Tier::Device, MemoryUse::Workspace, kOfTheRun, shape.backwardScratchBytes);
    list.add(Tier::Device, MemoryUse::Head, kOfTheRun, shape.headScratchBytes);
    list.add(Tier::Device, MemoryUse::Constants, kOfTheRun, shape.constantBytes);
    list.add(Tier::PinnedHost, MemoryUse::Staging, kOfTheRun, kStagingBytes);
}

void addActivations(ItemList& list, const StepSpec& spec, const ModelShape& shape, int inFlight)
{
    const auto layers = static_cast<std::size_t>(shape.layers());
    const auto flying = static_cast<std::size_t>(inFlight);
    // The outputs of the embedding and of each block, and the gradient of the stream.
    list.add(Tier::Device, MemoryUse::Boundaries, kOfTheRun, shape.boundaryBytes * layers * flying);
    const std::size_t blocks = layers - 2;
    const std::size_t kept = spec.recompute ? std::min<std::size_t>(blocks, 1) : blocks * flying;
    list.add(Tier::Device, MemoryUse::Activations, kOfTheRun, shape.savedBytesPerBlock * kept);
    list.add(Tier::Device, MemoryUse::HeadProduct, kOfTheRun, shape.headProductBytes);
    list.add(Tier::Device, MemoryUse::SecondAccumulator, GroupId{0},
        kAccumulatorBytes * static_cast<std::size_t>(shape.secondAccumulatorElements));
}

Status checkInput(const StepSpec& spec, const ModelShape& shape)
{
    if (shape.layers() < 2) {
        return Status::error(
            ErrorKind::InvalidArgument, "plan: a model has an embedding and a head, not " +
                                            std::to_string(shape.layers()) + " groups");
    }
    if (spec.microBatches < 1) {
        return Status::error(ErrorKind::InvalidArgument,
            "plan: a step has at least one micro-batch, not " + std::to_string(spec.microBatches));
    }
    return {};
}

} // namespace

std::string_view name(MemoryUse use) noexcept
{
    return kUseNames[static_cast<std::size_t>(use)];
}

std::size_t MemoryPlan::bytes(Tier tier) const noexcept
{
    std::size_t sum = 0;
    for (const MemoryItem& item : items)
        sum += item.tier == tier ? item.bytes : 0;
    return sum;
}

std::size_t MemoryPlan::bytes(Tier tier, MemoryUse use) const noexcept
{
    std::size_t sum = 0;
    for (const MemoryItem& item : items)
        sum += item.tier == tier && item.use == use ? item.bytes : 0;
    return sum;
}

Result<MemoryPlan> planMemory(const StepSpec& spec, const ModelShape& shape, const Budget& budget,
    const Feedback& last, const OffloadPolicy& policy)
{
    MR_TRY(checkInput(spec, shape));
    const std::vector<GroupPlacement> placements = policy.placement->place(shape, budget, last);
    const int inFlight = microBatchesInFlight(*policy.traversal, shape.layers(), spec.microBatches);
    ItemList list;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        addGroup(list, GroupId{static_cast<std::int32_t>(g)}, shape.groups[g].elements,
            placements[g], spec.precision);
    }
    addBothSides(list, shape, batchBuffers(inFlight), spec.microBatches);
    addActivations(list, spec, shape, inFlight);
    return list.take();
}

MemoryPlan planInferenceMemory(const StepSpec& spec, const ModelShape& shape)
{
    ItemList list;
    for (std::size_t g = 0; g < shape.groups.size(); ++g) {
        list.add(Tier::Device, MemoryUse::Weights, GroupId{static_cast<std::int32_t>(g)},
            computeBytes(spec.precision) * static_cast<std::size_t>(shape.groups[g].elements));
    }
    addBothSides(list, shape, batchBuffers(1), spec.microBatches);
    // A layer reads one and writes the other.
    list.add(Tier::Device, MemoryUse::Boundaries, kOfTheRun, 2 * shape.boundaryBytes);
    list.add(Tier::Device, MemoryUse::Activations, kOfTheRun,
        shape.layers() > 2 ? shape.savedBytesPerBlock : 0);
    return list.take();
}

} // namespace mr
