#include "core/step/run_master.h"

#include "core/device/master24.h"
#include "core/model/frozen_model.h"
#include "core/model/packed_group.h"
#include "core/model/weights.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mr {
namespace {

class StateMaster final : public MasterReader
{
public:
    StateMaster(StepExecutor& executor, const RunMemory& memory)
        : m_executor(executor)
        , m_codec(memory.stateCodec())
        , m_isApart(memory.keepsColumnsApart())
    {
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        const auto part = [&](StatePart which, auto values) {
            return m_executor.state().read(group, which, first, std::as_writable_bytes(values));
        };
        MR_TRY(part(StatePart::High, out.high));
        if (!out.low.empty() && isLossless(m_codec)) {
            MR_TRY(part(StatePart::Low, out.low));
        } else if (!out.low.empty() && !hasRemainder(m_codec)) {
            std::fill(out.low.begin(), out.low.end(), std::int16_t{0});
        } else if (!out.low.empty()) {
            m_remainder.resize(out.low.size());
            MR_TRY(part(StatePart::Low, std::span(m_remainder)));
            decodeMaster24(out.high, m_remainder, out.low);
        }
        // The host's planes hold nothing of these.
        RunWindow* window = m_isApart ? m_executor.window() : nullptr;
        return window ? window->master().read(group, first, out) : Status();
    }

private:
    StepExecutor& m_executor;
    StateCodec m_codec;
    bool m_isApart;
    std::vector<std::int8_t> m_remainder;
};

// Halves of elements that `fill` reads in the compute type.
class ComputeElements
{
public:
    explicit ComputeElements(DType compute)
        : m_compute(compute)
    {
    }

    template <typename Fill>
    Status read(const MasterView& out, Fill fill)
    {
        if (m_compute == DType::BF16) {
            std::fill(out.low.begin(), out.low.end(), std::int16_t{0});
            return fill(std::as_writable_bytes(out.high));
        }
        m_joined.resize(out.high.size());
        MR_TRY(fill(std::as_writable_bytes(std::span(m_joined))));
        std::transform(m_joined.begin(), m_joined.end(), out.high.begin(), highHalf);
        if (!out.low.empty())
            std::transform(m_joined.begin(), m_joined.end(), out.low.begin(), lowHalf);
        return {};
    }

private:
    DType m_compute;
    std::vector<float> m_joined;
};

class WeightsInUse final : public MasterReader
{
public:
    WeightsInUse(StepExecutor& executor, const RunMemory& memory)
        : m_executor(executor)
        , m_memory(memory)
        , m_elements(memory.compute())
    {
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        const std::byte* from = m_memory.group(group).weights +
                                static_cast<std::size_t>(first) * sizeOf(m_memory.compute());
        return m_elements.read(
            out, [&](std::span<std::byte> to) { return m_executor.copier().toHost(to, from); });
    }

private:
    StepExecutor& m_executor;
    const RunMemory& m_memory;
    ComputeElements m_elements;
};

class WholeMaster final : public MasterReader
{
public:
    WholeMaster(StepExecutor& executor, const RunMemory& memory, MasterReader& trained)
        : m_executor(executor)
        , m_memory(memory)
        , m_trained(trained)
        , m_elements(memory.compute())
    {
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        if (!m_memory.group(group).isFrozen())
            return m_trained.read(group, first, out);
        return m_elements.read(out, [&](std::span<std::byte> to) {
            return m_executor.state().readFrozen(group, first, to);
        });
    }

private:
    StepExecutor& m_executor;
    const RunMemory& m_memory;
    MasterReader& m_trained;
    ComputeElements m_elements;
};

} // namespace

Result<std::unique_ptr<MasterReader>> stateMaster(StepExecutor& executor, const RunMemory& memory)
{
    if (RunWindow* window = executor.window())
        MR_TRY(window->master().publish());
    return std::unique_ptr<MasterReader>(std::make_unique<StateMaster>(executor, memory));
}

std::unique_ptr<MasterReader> weightsInUse(StepExecutor& executor, const RunMemory& memory)
{
    return std::make_unique<WeightsInUse>(executor, memory);
}

Status installMaster(StepExecutor& executor, const RunMemory& memory, MasterReader& master)
{
    MasterPiece piece;
    for (std::int32_t g = 0; g < memory.groupCount(); ++g) {
        const GroupId id{g};
        const GroupMemory& group = memory.group(id);
        const std::byte* high = group.state[static_cast<std::size_t>(StatePart::High)];
        const bool onDisk =
            memory.disk().cuts().isActive() && group.diskEnds.weights < group.elements;
        const auto put = [&](std::int64_t first, const MasterView& view) -> Status {
            if (high || onDisk)
                MR_TRY(executor.state().writeMaster(id, first, view));
            // Where the device updates in BF16, the high half is the weight.
            return high == group.weights ? Status()
                                         : executor.state().uploadWeights(id, first, view);
        };
        MR_TRY(forPieces(master, {id, 0, group.elements}, piece, put));
    }
    RunWindow* window = executor.window();
    return window ? window->master().install(master) : Status();
}

Result<std::string> installFrozen(
    StepExecutor& executor, const ParamTable& table, MasterReader& model)
{
    if (!table.frozen)
        return std::string();
    GroupPacker packer(table, executor.state().compute(), model,
        [&](GroupId group, std::size_t at, std::span<const std::byte> bytes) {
            return executor.state().writePacked(group, at, bytes);
        });
    return weightsHash(
        wholeModel(table), model, [&](GroupId group, std::int64_t first, const MasterView& view) {
            if (packer.packs(group))
                return packer.add(group, first, view);
            // Elements behind the frozen ones are trained.
            const std::int64_t left = frozenElements(table, group) - first;
            const auto count =
                static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, std::ssize(view.high)));
            return count > 0 ? executor.state().writeFrozen(group, first, view.part(0, count))
                             : Status();
        });
}

std::unique_ptr<MasterReader> wholeMaster(
    StepExecutor& executor, const RunMemory& memory, MasterReader& trained)
{
    return std::make_unique<WholeMaster>(executor, memory, trained);
}

} // namespace mr
