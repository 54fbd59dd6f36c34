#include "core/run/run_account.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mr {

void RunAccount::begin(std::int64_t nowNs, const MovedBytes& moved) noexcept
{
    m_endNs = nowNs;
    m_moved = moved;
    m_split = {};
}

void RunAccount::addRun(const StallSplit& split) noexcept
{
    m_split.computeNs += split.computeNs;
    for (std::size_t i = 0; i < kStallCauses; ++i)
        m_split.stallNs[i] += split.stallNs[i];
}

IntervalRow RunAccount::closeInterval(
    IntervalKind kind, std::int64_t nowNs, const MovedBytes& moved) noexcept
{
    StallSplit split = std::exchange(m_split, {});
    const std::int64_t explained =
        std::accumulate(split.stallNs.begin(), split.stallNs.end(), split.computeNs);
    const std::int64_t rest = nowNs - m_endNs - explained;
    split.stallNs.at(static_cast<std::size_t>(StallCause::Other)) +=
        std::max<std::int64_t>(rest, 0);
    const StepRow times = toStepRow(split);
    const MovedBytes bytes = closeStep(nowNs, moved);
    IntervalRow row;
    row.kind = kind;
    row.endUs = times.wallUs; // on a clock that begins with the row
    row.computeUs = times.computeUs;
    row.stallUs = times.stallUs;
    row.h2dBytes = bytes.toDevice;
    row.d2hBytes = bytes.toHost;
    row.diskReadBytes = bytes.diskRead;
    row.diskWriteBytes = bytes.diskWritten;
    return row;
}

MovedBytes RunAccount::closeStep(std::int64_t endNs, const MovedBytes& moved) noexcept
{
    const MovedBytes since{moved.toDevice - m_moved.toDevice, moved.toHost - m_moved.toHost,
        moved.diskRead - m_moved.diskRead, moved.diskWritten - m_moved.diskWritten};
    m_endNs = endNs;
    m_moved = moved;
    return since;
}

} // namespace mr
