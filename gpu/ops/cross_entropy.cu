// Cross-entropy of rows of logits, with its gradient.
//
// One block a row, for a vocabulary of up to a quarter of a million. A row of 8,193 to 32,768
// columns of whole packs is one round of 64 logits a thread, so no logit is read twice
// (softmax_rows.cuh).
//
// Blocks have 512 threads at most. Where rounds are short, two of them share a multiprocessor: one
// reads while the other waits at a barrier. A whole row fills the registers; its 128 KiB of loads
// in flight keep the memory busy instead, expected.

#include "gpu/ops/launchers.h"
#include "gpu/ops/softmax_rows.cuh"

#include <algorithm>

namespace mr::gpu {
namespace {

// logits, gradLogits (rows, cols), which may be the same; targets, losses (rows)
template <typename T>
struct Rows {
    const float* logits;
    const std::int32_t* targets;
    float* losses;
    T* gradLogits; // null: only the losses
    std::int64_t cols;
    float scale;
    float inverseCap; // 0: the logits have no cap
};

template <typename T, int kPack>
__device__ void skipRow(const Rows<T>& a, std::int64_t row)
{
    if (threadIdx.x == 0)
        a.losses[row] = 0.0F;
    if (!a.gradLogits)
        return;
    const float zeros[kPack] = {};
    const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * kPack;
    for (std::int64_t c = static_cast<std::int64_t>(threadIdx.x) * kPack; c < a.cols; c += step)
        storePack(a.gradLogits + row * a.cols + c, roundPack<T>(zeros));
}

// Block b: row b, any whole number of warps.
template <typename T, int kPack, int kRound>
__global__ void __launch_bounds__(kMaxThreads, kRound == kShortRound ? 2 : 1)
    crossEntropyKernel(Rows<T> a)
{
    const std::int64_t row = blockIdx.x;
    const float* logits = a.logits + row * a.cols;
    const std::int32_t target = a.targets[row];
    if (target < 0) {
        skipRow<T, kPack>(a, row);
        return;
    }
    // Before the barriers of readRow(): the gradient may overwrite it.
    const float targetLogit = logits[target];
    const std::int64_t perRound = static_cast<std::int64_t>(blockDim.x) * kPack * kRound;
    const int rounds =
        kRound == kWholeRow ? 1 : static_cast<int>((a.cols + perRound - 1) / perRound);
    LogitRound<kPack, kRound> held;
    const Online whole = readRow(logits, a.cols, rounds, held);
    if (threadIdx.x == 0)
        a.losses[row] = logf(whole.sum) + (whole.top - targetLogit);
    if (!a.gradLogits)
        return;
    const Gradient<T> to{a.gradLogits + row * a.cols, a.cols, target, __fdiv_rn(a.scale, whole.sum),
        a.inverseCap,
        a.scale * (__fdiv_rn(expf(targetLogit - whole.top), whole.sum) - 1.0F) *
            slopeOf(targetLogit, a.inverseCap)};
    storeRound(to, rounds - 1, whole.top, held);
    for (int round = rounds - 2; round >= 0; --round) {
        loadRound(logits, a.cols, round, held);
        storeRound(to, round, whole.top, held);
    }
}

template <typename T, int kPack>
Status launchRounds(const Rows<T>& rows, LaunchShape shape, cudaStream_t stream)
{
    constexpr std::int64_t kPerWarp = std::int64_t{kWarp} * kPack * kShortRound;
    const std::int64_t warps = (rows.cols + kPerWarp - 1) / kPerWarp;
    shape.block =
        dim3(static_cast<unsigned>(std::clamp<std::int64_t>(warps * kWarp, kWarp, kMaxThreads)));
    return launchKernel(
        "crossEntropy", listed<crossEntropyKernel<T, kPack, kShortRound>>(), shape, stream, rows);
}

template <typename T>
Status launch(const CrossEntropyArgs& args, cudaStream_t stream)
{
    const Rows<T> rows{args.logits.as<const float>(), args.targets.as<const std::int32_t>(),
        args.losses.as<float>(), args.gradLogits.as<T>(), args.logits.dims[1], args.scale,
        args.softcap > 0.0F ? 1.0F / args.softcap : 0.0F};
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(args.logits.dims[0]));
    if (rows.cols % kLogitPack != 0 || !fitsPacks(kLogitPack, args.logits, args.gradLogits))
        return launchRounds<T, 1>(rows, shape, stream);
    constexpr std::int64_t kPerPack = std::int64_t{kMaxThreads} * kLogitPack;
    if (rows.cols <= kPerPack * kShortRound || rows.cols > kPerPack * kWholeRow)
        return launchRounds<T, kLogitPack>(rows, shape, stream);
    shape.block = dim3(kMaxThreads);
    return launchKernel("crossEntropy", listed<crossEntropyKernel<T, kLogitPack, kWholeRow>>(),
        shape, stream, rows);
}

} // namespace

Status launchCrossEntropy(const CrossEntropyArgs& args, cudaStream_t stream)
{
    return args.gradLogits.data && args.gradLogits.dtype == DType::BF16
               ? launch<Bf16>(args, stream)
               : launch<float>(args, stream);
}

} // namespace mr::gpu
