#include "core/step/window_memory.h"

#include "core/device/ops.h"
#include "core/model/layout.h"

#include <cstring>
#include <numeric>
#include <string>

namespace mr {
namespace {

Status windowLacks(MemoryUse use)
{
    return Status::error(
        ErrorKind::Internal, "window memory: the plan has no " + std::string(name(use)));
}

std::size_t bytesOf(std::int64_t count, std::size_t each)
{
    return static_cast<std::size_t>(count) * each;
}

} // namespace

Result<WindowMemory> WindowMemory::create(const TierStore& tiers, DType compute)
{
    WindowMemory memory;
    memory.m_layout = &tiers.plan().window;
    memory.m_compute = compute;
    MR_TRY(memory.bindGroups(tiers));
    MR_TRY(memory.bindRun(tiers));
    memory.firstColumns();
    return memory;
}

Status WindowMemory::bindGroups(const TierStore& tiers)
{
    for (std::size_t g = 0; g < m_layout->groups.size(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        const GroupCut& cut = m_layout->groups[g];
        const auto device = [&](MemoryUse use) { return tiers.find(Tier::Device, use, id).data(); };
        const auto host = [&](MemoryUse use) {
            return tiers.find(Tier::PinnedHost, use, id).data();
        };
        WindowGroup group;
        group.state = device(MemoryUse::UrgentState);
        group.gradients = device(MemoryUse::UrgentGradients);
        group.sums = device(MemoryUse::UrgentSums);
        group.energies = device(MemoryUse::ColumnEnergies);
        group.lists = device(MemoryUse::ColumnLists);
        if (m_layout->sharesPacked(g)) {
            const auto shared = tiers.find(Tier::Device, MemoryUse::PackedGradients);
            group.packed = shared.data() + shared.size() / kPackedSlots * ((g - 1) % kPackedSlots);
        } else {
            group.packed = device(MemoryUse::PackedGradients);
        }
        group.deviceSums = device(MemoryUse::WindowSums);
        group.landed = host(MemoryUse::Gradients);
        group.hostSums = host(MemoryUse::WindowSums);
        group.columns.resize(static_cast<std::size_t>(cut.columns));
        if (cut.dense > 0 && !group.state)
            return windowLacks(MemoryUse::UrgentState);
        if (cut.packed > 0 && (!group.packed || !group.hostSums))
            return windowLacks(MemoryUse::WindowSums);
        if (cut.packed > 0 && m_layout->onDevice && !group.deviceSums)
            return windowLacks(MemoryUse::WindowSums);
        m_groups.push_back(std::move(group));
    }
    return {};
}

Status WindowMemory::bindRun(const TierStore& tiers)
{
    const auto device = [&](MemoryUse use) { return tiers.find(Tier::Device, use); };
    m_uploads = device(MemoryUse::UploadSlots).data();
    scratch = device(MemoryUse::UrgentScratch).data();
    const auto energies = tiers.find(Tier::PinnedHost, MemoryUse::ColumnEnergies);
    hostEnergies = {reinterpret_cast<float*>(energies.data()), energies.size() / sizeof(float)};
    if (!m_layout->hasNorm)
        return {};
    const auto scalars = device(MemoryUse::WindowScalars);
    const auto host = tiers.find(Tier::PinnedHost, MemoryUse::WindowScalars);
    if (scalars.empty() || host.empty())
        return windowLacks(MemoryUse::WindowScalars);
    m_urgentScalars = vectorView(scalars.data(), DType::U8, sizeof(StepScalars));
    m_urgentNorms = vectorView(scalars.data() + kWindowScalarBytes, DType::F32,
        static_cast<std::int64_t>((scalars.size() - kWindowScalarBytes) / sizeof(float)));
    hostUrgentScalars = host.data();
    const StepScalars none; // as in RunMemory
    std::memcpy(hostUrgentScalars, &none, sizeof none);
    hostNormBlocks = {reinterpret_cast<float*>(host.data() + kWindowScalarBytes),
        (host.size() - kWindowScalarBytes) / sizeof(float)};
    std::size_t at = 0;
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
        m_groups[g].normBlocks = hostNormBlocks.data() + at;
        at += static_cast<std::size_t>(normBlockCount(m_layout->groups[g].packed));
    }
    return {};
}

// Until columns are chosen the first ones are urgent.
void WindowMemory::firstColumns()
{
    for (std::size_t g = 0; g < m_groups.size(); ++g)
        for (const WeightCut& slot : m_layout->groups[g].weights) {
            const auto first = m_groups[g].columns.begin() + slot.listFirst;
            std::iota(first, first + slot.cols, 0);
        }
}

DenseState WindowMemory::dense(GroupId id, const WeightCut& slot) const
{
    const std::int64_t all = cut(id).dense;
    std::byte* base = group(id).state;
    const auto part = [&](std::int64_t before, std::size_t each, DType type) {
        return vectorView(
            base + bytesOf(all, static_cast<std::size_t>(before)) + bytesOf(slot.denseFirst, each),
            type, slot.denseCount());
    };
    DenseState state;
    state.m = part(0, 4, DType::F32);
    state.v = part(4, 4, DType::F32);
    state.low = part(8, 2, DType::I16);
    state.high = part(10, 2, DType::U16);
    return state;
}

TensorView WindowMemory::urgentGradient(GroupId id, const WeightCut& slot) const
{
    return matrixView(group(id).gradients + bytesOf(slot.denseFirst, sizeOf(m_compute)), m_compute,
        slot.rows, slot.urgent);
}

TensorView WindowMemory::packed(GroupId id, const WeightCut& slot) const
{
    return matrixView(group(id).packed + bytesOf(slot.packedFirst, sizeOf(m_compute)), m_compute,
        slot.rows, slot.complement());
}

TensorView WindowMemory::packed(GroupId id) const
{
    return vectorView(group(id).packed, m_compute, cut(id).packed);
}

TensorView WindowMemory::deviceSums(GroupId id) const
{
    return vectorView(group(id).deviceSums, DType::F32, cut(id).packed);
}

TensorView WindowMemory::urgentSums(GroupId id) const
{
    return vectorView(group(id).sums, DType::F32, cut(id).dense);
}

TensorView WindowMemory::energy(GroupId id, const WeightCut& slot) const
{
    return vectorView(
        group(id).energies + bytesOf(slot.listFirst, sizeof(float)), DType::F32, slot.cols);
}

TensorView WindowMemory::stepEnergies(GroupId id) const
{
    return vectorView(group(id).energies, DType::F32, cut(id).columns);
}

TensorView WindowMemory::runningEnergies(GroupId id) const
{
    const std::int64_t columns = cut(id).columns;
    return vectorView(group(id).energies + bytesOf(columns, sizeof(float)), DType::F32, columns);
}

TensorView WindowMemory::urgentColumns(GroupId id, const WeightCut& slot) const
{
    return vectorView(
        group(id).lists + bytesOf(slot.listFirst, sizeof(std::int32_t)), DType::I32, slot.urgent);
}

TensorView WindowMemory::hostColumns(GroupId id, const WeightCut& slot) const
{
    return vectorView(group(id).lists + bytesOf(slot.listFirst + slot.urgent, sizeof(std::int32_t)),
        DType::I32, slot.complement());
}

std::span<std::int32_t> WindowMemory::urgentList(GroupId id, const WeightCut& slot)
{
    return std::span(m_groups[indexOf(id)].columns)
        .subspan(static_cast<std::size_t>(slot.listFirst), static_cast<std::size_t>(slot.urgent));
}

std::span<std::int32_t> WindowMemory::hostList(GroupId id, const WeightCut& slot)
{
    return std::span(m_groups[indexOf(id)].columns)
        .subspan(static_cast<std::size_t>(slot.listFirst + slot.urgent),
            static_cast<std::size_t>(slot.complement()));
}

std::span<const std::int32_t> WindowMemory::hostList(GroupId id, const WeightCut& slot) const
{
    return std::span(group(id).columns)
        .subspan(static_cast<std::size_t>(slot.listFirst + slot.urgent),
            static_cast<std::size_t>(slot.complement()));
}

std::size_t WindowMemory::bankBytes(GroupId id) const
{
    return bytesOf(cut(id).packed, sizeOf(sumType()));
}

std::byte* WindowMemory::bank(GroupId id, int index) const
{
    return group(id).hostSums + static_cast<std::size_t>(index) * bankBytes(id);
}

std::byte* WindowMemory::uploadSlot(int index) const
{
    return m_uploads +
           static_cast<std::size_t>(index) * bytesOf(m_layout->uploadElements, sizeOf(m_compute));
}

} // namespace mr
