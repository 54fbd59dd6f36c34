#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/lanes.h"

#include <type_traits>

namespace mr::cpu {

namespace {

// The normed value as the weight meets it: see NormGain.
template <NormGain kGain, typename T>
float storedNorm(float normed) noexcept
{
    return kGain == NormGain::Weight ? rounded<T>(normed) : normed;
}

// Term that makes a gain of the weight.
template <NormGain kGain>
inline constexpr float kOffset = kGain == NormGain::Weight ? 0.0F : 1.0F;

template <NormGain kGain, typename T>
void normRow(const RmsNormArgs& args, std::int64_t row) noexcept
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
    const float mean = sumSquares(x, cols) / static_cast<float>(cols);
    const float rstd = 1.0F / std::sqrt(mean + args.eps);
    args.rstd.as<float>()[row] = rstd;
    const T* weight = args.weight.as<const T>();
    T* out = args.out.as<T>() + row * cols;
    for (std::int64_t c = 0; c < cols; ++c)
        out[c] = fromFloat<T>(
            (toFloat(weight[c]) + kOffset<kGain>)*storedNorm<kGain, T>(toFloat(x[c]) * rstd));
}

// With n = x rstd: gradX = rstd (g w - n mean(g w n)) + gradResidual; partial += g n.
template <NormGain kGain, typename T>
void normBackwardRow(const RmsNormBackwardArgs& args, std::int64_t row, float* partial) noexcept
{
    const std::int64_t cols = args.x.dims[1];
    const T* x = args.x.as<const T>() + row * cols;
    const T* grad = args.gradOut.as<const T>() + row * cols;
    const T* weight = args.weight.as<const T>();
    const float rstd = args.rstd.as<const float>()[row];
    const float mean =
        sumTriples(grad, weight, kOffset<kGain>, x, cols) * rstd / static_cast<float>(cols);
    for (std::int64_t c = 0; c < cols; ++c)
        partial[c] =
            std::fma(toFloat(grad[c]), storedNorm<kGain, T>(toFloat(x[c]) * rstd), partial[c]);
    T* out = args.gradX.as<T>() + row * cols;
    const T* residual =
        args.gradResidual.data ? args.gradResidual.as<const T>() + row * cols : nullptr;
#pragma GCC ivdep // gradX may be gradResidual, element for element
    for (std::int64_t c = 0; c < cols; ++c) {
        const float normed = toFloat(x[c]) * rstd;
        const float gain = toFloat(weight[c]) + kOffset<kGain>;
        const float inner = std::fma(toFloat(grad[c]), gain, -(normed * mean));
        out[c] =
            fromFloat<T>(residual ? std::fma(rstd, inner, toFloat(residual[c])) : rstd * inner);
    }
}

// gradWeight (+)= the blocks in order.
template <typename Out>
void joinPartials(const RmsNormBackwardArgs& args, std::int64_t first, std::int64_t end) noexcept
{
    const std::int64_t cols = args.x.dims[1];
    const std::int64_t blocks = args.partial.dims[0];
    const auto* partial = args.partial.as<const float>();
    Out* out = args.gradWeight.as<Out>();
    for (std::int64_t c = first; c < end; ++c) {
        float sum = 0.0F;
        for (std::int64_t b = 0; b < blocks; ++b)
            sum += partial[b * cols + c];
        out[c] = fromFloat<Out>(args.accumulate ? toFloat(out[c]) + sum : sum);
    }
}

// Calls fn with the gain as a constant: f([](auto tag) ...).
template <typename F>
void withGain(NormGain gain, F&& fn)
{
    if (gain == NormGain::OnePlusWeight)
        fn(std::integral_constant<NormGain, NormGain::OnePlusWeight>());
    else
        fn(std::integral_constant<NormGain, NormGain::Weight>());
}

// One block of rows and its partial sums.
template <NormGain kGain, typename T>
void backwardBlock(const RmsNormBackwardArgs& args, std::int64_t block) noexcept
{
    const std::int64_t cols = args.x.dims[1];
    float* partial = args.partial.as<float>() + block * cols;
    std::fill(partial, partial + cols, 0.0F);
    const std::int64_t end = std::min(args.x.dims[0], (block + 1) * kNormRowBlock);
    for (std::int64_t r = block * kNormRowBlock; r < end; ++r)
        normBackwardRow<kGain, T>(args, r, partial);
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
                    normRow<gain(), T>(args, r);
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
    withType(args.gradWeight.dtype, [&](auto* tag) {
        using Out = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.x.dims[1], 1024,
            [&](std::int64_t first, std::int64_t end) { joinPartials<Out>(args, first, end); });
    });
}

} // namespace mr::cpu
