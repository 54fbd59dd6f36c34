// WindowMemory: the bytes of a policy that splits gradients by columns, and which columns those
// are.
//
// The layouts are those of core/plan/columns.h. Columns are lists of indices, one of the device's
// and one of the host's for every weight; the device's may be in any order, which is that of its
// dense state, the host's ascend.
//
// Threads    Engine thread; during a step nobody changes it.
// Ownership  Bytes are the TierStore's, lists its own.
// Errors     Internal if the plan lacks an item that a view needs.

#pragma once

#include "core/device/tensor.h"
#include "core/plan/columns.h"
#include "core/tier/tier_store.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

// Master and moments of the urgent columns of one weight, on the device; (rows, urgent).
struct DenseState {
    TensorView high; // U16, flat, and so the next three
    TensorView low;  // I16
    TensorView m;    // F32
    TensorView v;    // F32
};

struct WindowGroup {
    // Device. Null where the plan holds no such bytes.
    std::byte* state = nullptr;      // m, v, low, high of all dense elements
    std::byte* gradients = nullptr;  // dense, c
    std::byte* sums = nullptr;       // dense, F32
    std::byte* energies = nullptr;   // (columns) F32: of this step; behind it the running ones
    std::byte* lists = nullptr;      // I32: by weight the device's columns, then the host's
    std::byte* packed = nullptr;     // c
    std::byte* deviceSums = nullptr; // packed, F32
    // Pinned host
    std::byte* landed = nullptr;       // packed, c
    std::byte* hostSums = nullptr;     // banks
    float* normBlocks = nullptr;       // for the sums, one for every 1,024
    std::vector<std::int32_t> columns; // copy of `lists`
};

class WindowMemory
{
public:
    static Result<WindowMemory> create(const TierStore& tiers, DType compute);

    const WindowLayout& layout() const noexcept { return *m_layout; }
    const GroupCut& cut(GroupId id) const { return m_layout->groups[indexOf(id)]; }
    const WindowGroup& group(GroupId id) const { return m_groups[indexOf(id)]; }
    std::int64_t groupCount() const noexcept { return static_cast<std::int64_t>(m_groups.size()); }

    DType compute() const noexcept { return m_compute; }
    DType sumType() const noexcept { return m_layout->direct ? m_compute : DType::F32; }

    DenseState dense(GroupId id, const WeightCut& slot) const;
    // (rows, urgent), c: the gradient of the device's columns.
    TensorView urgentGradient(GroupId id, const WeightCut& slot) const;
    TensorView packed(GroupId id, const WeightCut& slot) const; // (rows, complement), c
    TensorView packed(GroupId id) const;                        // (packed), c
    TensorView deviceSums(GroupId id) const;                    // (packed), F32
    TensorView urgentSums(GroupId id) const;                    // (dense), F32
    TensorView energy(GroupId id, const WeightCut& slot) const; // (cols), F32
    TensorView runningEnergies(GroupId id) const;               // (columns), F32
    TensorView stepEnergies(GroupId id) const;
    // On the device; (urgent) or (complement), I32.
    TensorView urgentColumns(GroupId id, const WeightCut& slot) const;
    TensorView hostColumns(GroupId id, const WeightCut& slot) const;
    // Both lists on the host.
    std::span<std::int32_t> urgentList(GroupId id, const WeightCut& slot);
    std::span<std::int32_t> hostList(GroupId id, const WeightCut& slot);
    std::span<const std::int32_t> hostList(GroupId id, const WeightCut& slot) const;

    // All weights of a group: its lists on the device are made from these.
    std::span<std::int32_t> columns(GroupId id) { return m_groups[indexOf(id)].columns; }

    std::byte* bank(GroupId id, int index) const; // packed sums
    std::size_t bankBytes(GroupId id) const;      // in one bank
    std::byte* uploadSlot(int index) const;

    TensorView urgentNormBlocks() const { return m_urgentNorms; } // device, F32
    TensorView urgentScalars() const { return m_urgentScalars; }  // device, U8
    std::byte* hostUrgentScalars = nullptr;                       // SendScalars copies them here
    std::span<float> hostNormBlocks;                              // for all groups
    std::byte* scratch = nullptr;  // device, F32, (largest dense); F32 precision only
    std::span<float> hostEnergies; // pinned, for all groups

private:
    WindowMemory() = default;
    static std::size_t indexOf(GroupId id) { return static_cast<std::size_t>(id.value); }
    Status bindGroups(const TierStore& tiers);
    Status bindRun(const TierStore& tiers);
    void firstColumns();

    const WindowLayout* m_layout = nullptr; // the tier store's plan has it
    DType m_compute{};
    std::vector<WindowGroup> m_groups;
    TensorView m_urgentNorms;
    TensorView m_urgentScalars;
    std::byte* m_uploads = nullptr;
};

} // namespace mr
