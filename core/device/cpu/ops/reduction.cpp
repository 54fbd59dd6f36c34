#include "core/device/clip_factor.h"
#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/lanes.h"

#include <cstring>

namespace mr::cpu {

namespace {

constexpr std::int64_t kNormBlock = 1024;
// Columns one item sums down the rows: two cache lines of BF16, four of F32.
constexpr std::int64_t kColumnsOfItem = 64;

// out[c] = fn(sum over rows, ascending, of term(value)) for the columns of one item.
template <typename T, typename Term, typename Store>
void sumColumns(const TensorView& x, std::int64_t first, std::int64_t end, Term term, Store store)
{
    float sums[kColumnsOfItem] = {};
    const std::int64_t cols = x.dims[1];
    const std::int64_t count = end - first;
    for (std::int64_t r = 0; r < x.dims[0]; ++r) {
        const T* row = x.as<const T>() + r * cols + first;
        for (std::int64_t c = 0; c < count; ++c)
            sums[c] = term(toFloat(row[c]), sums[c]);
    }
    for (std::int64_t c = 0; c < count; ++c)
        store(first + c, sums[c]);
}

} // namespace

void normBlocks(const NormBlocksArgs& args, ThreadPool& pool)
{
    const std::int64_t n = args.x.dims[0];
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const T* x = args.x.as<const T>();
        forBlocks(pool, args.blockSums.dims[0], 32, [&](std::int64_t b, std::int64_t end) {
            for (; b < end; ++b)
                args.blockSums.as<float>()[b] =
                    sumSquares(x + b * kNormBlock, std::min(kNormBlock, n - b * kNormBlock));
        });
    });
}

namespace {

// The order of NormJoinArgs.
double sumOfChunk(const float* values, std::int64_t count)
{
    constexpr std::int64_t kChunkLanes = 32;
    std::array<double, kChunkLanes> lanes{};
    for (std::int64_t i = 0; i < count; ++i)
        lanes[static_cast<std::size_t>(i % kChunkLanes)] += static_cast<double>(values[i]);
    for (std::size_t half = kChunkLanes / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

} // namespace

void normJoin(const NormJoinArgs& args)
{
    constexpr std::int64_t kBlocksAtOnce = 1024;
    const std::int64_t blocks = args.blockSums.dims[0];
    double total = 0.0;
    for (std::int64_t first = 0; first < blocks; first += kBlocksAtOnce)
        total += sumOfChunk(
            args.blockSums.as<const float>() + first, std::min(kBlocksAtOnce, blocks - first));
    StepScalars scalars;
    scalars.gradNorm = std::sqrt(total);
    scalars.finite = std::isfinite(total) ? 1 : 0;
    if (scalars.finite != 0)
        scalars.clipFactor = clipFactorOf(scalars.gradNorm, args.clipNorm);
    std::memcpy(args.scalars.data, &scalars, sizeof scalars);
}

void columnEnergy(const ColumnEnergyArgs& args, ThreadPool& pool)
{
    withType(args.grad.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const auto store = [&](std::int64_t c, float sum) { args.energy.as<float>()[c] = sum; };
        forBlocks(
            pool, args.grad.dims[1], kColumnsOfItem, [&](std::int64_t first, std::int64_t end) {
                if (args.absolute)
                    sumColumns<T>(
                        args.grad, first, end,
                        [](float g, float sum) { return sum + std::fabs(g); }, store);
                else
                    sumColumns<T>(
                        args.grad, first, end,
                        [](float g, float sum) { return std::fma(g, g, sum); }, store);
            });
    });
}

void biasGradient(const BiasGradientArgs& args, ThreadPool& pool)
{
    const auto add = [](float g, float sum) { return sum + g; };
    withTypes(args.gradOut.dtype, args.gradBias.dtype, [&](auto* in, auto* to) {
        using T = std::remove_pointer_t<decltype(in)>;
        using Out = std::remove_pointer_t<decltype(to)>;
        Out* out = args.gradBias.as<Out>();
        forBlocks(
            pool, args.gradOut.dims[1], kColumnsOfItem, [&](std::int64_t first, std::int64_t end) {
                sumColumns<T>(args.gradOut, first, end, add, [&](std::int64_t c, float sum) {
                    out[c] = fromFloat<Out>(args.accumulate ? toFloat(out[c]) + sum : sum);
                });
            });
    });
}

} // namespace mr::cpu
