#include "core/prove/bench_peaks.h"

#include "core/prove/bench_limits.h"
#include "core/prove/bench_rig.h"

#include <algorithm>

namespace mr {
namespace {

// Large enough that launch and edges of tiles do not count; the better of both is the peak.
constexpr std::int64_t kSquares[] = {4096, 8192};
constexpr std::size_t kLargestCopy = std::size_t{1} << 30;

} // namespace

Result<double> matrixPeak(Device& device, DType type)
{
    if (device.info().threads > 0)
        return peakFlops(type, device.info().threads);
    double peak = 0.0;
    for (const std::int64_t n : kSquares) {
        const std::size_t bytes = 3 * matrixView(nullptr, type, n, n).bytes();
        if (n > kSquares[0] && bytes > device.info().memoryBytes / 4)
            break;
        BenchRig rig(device);
        const TensorView x = rig.random(type, n, n);
        const TensorView weight = rig.random(type, n, n);
        const TensorView out = rig.zeros(type, n, n);
        const BenchTime time = rig.time([&](int) {
            return rig.ops().linear({x, weight, {}, out}, rig.stream());
        });
        MR_TRY(rig.status());
        const auto side = static_cast<double>(n);
        peak = std::max(peak, 2.0 * side * side * side / time.best);
    }
    return peak;
}

Result<double> memoryPeak(Device& device)
{
    if (device.info().threads > 0)
        return peakBytes(device.info().threads);
    const std::size_t bytes = std::min(kLargestCopy, device.info().memoryBytes / 8);
    BenchRig rig(device);
    std::byte* const from = rig.memory(bytes, MemoryKind::Device);
    std::byte* const to = rig.memory(bytes, MemoryKind::Device);
    const BenchTime time = rig.time([&](int) { return rig.stream().copy(to, {from, bytes}); });
    MR_TRY(rig.status());
    return 2.0 * static_cast<double>(bytes) / time.best;
}

} // namespace mr
