#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/norm_rows.h"

#include <algorithm>
#include <type_traits>

namespace mr::cpu {

namespace {

template <NormGain kGain, typename T>
void sumAndNormRow(const RmsNormArgs& args, std::int64_t row) noexcept
{
    const std::int64_t cols = args.x.dims[1];
    const T* x = args.x.as<const T>() + row * cols;
    if (args.residual.data) {
        const T* residual = args.residual.as<const T>() + row * cols;
        T* sum = args.sum.as<T>() + row * cols;
#pragma GCC ivdep // sum may be x or residual, element for element
        for (std::int64_t c = 0; c < cols; ++c)
            sum[c] = fromFloat<T>(toFloat(x[c]) + toFloat(residual[c]));
        x = sum;
    }
    args.rstd.as<float>()[row] = normRow<kGain, T>(
        x, args.weight.as<const T>(), args.out.as<T>() + row * cols, cols, args.eps);
}

// One block of rows and its partial sums.
template <NormGain kGain, typename T>
void backwardBlock(const RmsNormBackwardArgs& args, std::int64_t block) noexcept
{
    const std::int64_t cols = args.x.dims[1];
    const T* residual = args.gradResidual.as<const T>();
    float* partial = args.partial.as<float>() + block * cols;
    std::fill(partial, partial + cols, 0.0F);
    const std::int64_t end = std::min(args.x.dims[0], (block + 1) * kNormRowBlock);
    for (std::int64_t r = block * kNormRowBlock; r < end; ++r)
        normBackwardRow<kGain, T>(
            {args.gradOut.as<const T>() + r * cols, args.x.as<const T>() + r * cols,
                args.weight.as<const T>(), residual ? residual + r * cols : nullptr,
                args.gradX.as<T>() + r * cols, cols, args.rstd.as<const float>()[r]},
            partial);
}

} // namespace

void rmsNorm(const RmsNormArgs& args, ThreadPool& pool)
{
    const std::int64_t perItem = rowsPerItem(args.x.dims[1]);
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        withGain(args.gain, [&](auto gain) {
            forBlocks(pool, args.x.dims[0], perItem, [&](std::int64_t r, std::int64_t end) {
                for (; r < end; ++r)
                    sumAndNormRow<gain(), T>(args, r);
            });
        });
    });
}

void rmsNormBackward(const RmsNormBackwardArgs& args, ThreadPool& pool)
{
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        withGain(args.gain, [&](auto gain) {
            pool.parallelFor(args.partial.dims[0],
                [&](std::int64_t block) { backwardBlock<gain(), T>(args, block); });
        });
    });
    forBlocks(pool, args.x.dims[1], 1024, [&](std::int64_t first, std::int64_t end) {
        joinNormPartials(args.partial, args.gradWeight, args.accumulate, first, end);
    });
}

} // namespace mr::cpu
