// Cross-entropy of rows of logits, with its gradient.
//
// One block a row, for a vocabulary of up to a quarter of a million. The first pass keeps a running
// maximum and the sum of exponentials under it in every thread (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018), so the logits are read once for the loss. The
// gradient needs them again, from the end of the row to its start: registers still hold the round
// that was read last, and the L2 cache what was read shortly before. A row of 8,193 to 32,768
// columns of whole packs is one round of 64 logits a thread, so no logit is read twice.
//
// Blocks have 512 threads at most. Where rounds are short, two of them share a multiprocessor: one
// reads while the other waits at a barrier. A whole row fills the registers; its 128 KiB of loads
// in flight keep the memory busy instead, expected.
//
// Order   The columns of a thread follow from the number of columns and from whether packs fit;
//         then the tree of blockSum().
//
// A thread's state starts at (-infinity, 0). Differences are taken to `shiftOf` the maximum, which
// is 0 while there is none, because infinity minus infinity would be NaN. A NaN logit still makes
// the loss NaN.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

#include <algorithm>
#include <cmath>

namespace mr::gpu {
namespace {

constexpr int kMaxThreads = 512;
constexpr int kLogitPack = kPackOf<float>;
// Packs of a thread in a round.
constexpr int kShortRound = 4;
constexpr int kWholeRow = 16;
constexpr float kNone = -HUGE_VALF;

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

// d(softcap(x)) / dx where the logit is softcap(x); 1 without a cap.
__device__ float slopeOf(float logit, float inverseCap)
{
    const float t = logit * inverseCap;
    return __fmaf_rn(-t, t, 1.0F);
}

// Sum of exp(x - shiftOf(top)) over the logits so far; top is the largest x.
struct Online {
    float top = kNone;
    float sum = 0.0F;
};

__device__ float shiftOf(float top)
{
    return top == kNone ? 0.0F : top;
}

// A thread's packs of one round.
template <int kPack, int kRound>
struct LogitRound {
    Pack<float, kPack> at[kRound];
};

// Where pack `u` of round `round` begins: a block's width from pack u - 1.
template <int kPack, int kRound>
__device__ std::int64_t columnOf(int round, int u)
{
    const std::int64_t width = kRound == kWholeRow ? kMaxThreads : blockDim.x;
    return ((std::int64_t{round} * kRound + u) * width + threadIdx.x) * kPack;
}

// Past the end: kNone.
template <int kPack, int kRound>
__device__ void loadRound(
    const float* row, std::int64_t cols, int round, LogitRound<kPack, kRound>& held)
{
#pragma unroll
    for (int u = 0; u < kRound; ++u) {
        const std::int64_t c = columnOf<kPack, kRound>(round, u);
        if (c < cols)
            held.at[u] = loadPack<kPack>(row + c);
        else
            for (int k = 0; k < kPack; ++k)
                held.at[u].at[k] = kNone;
    }
}

template <int kPack, int kRound>
__device__ void addRound(Online& online, const LogitRound<kPack, kRound>& held)
{
    float top = online.top;
#pragma unroll
    for (int u = 0; u < kRound; ++u)
        for (int k = 0; k < kPack; ++k)
            top = fmaxf(top, held.at[u].at[k]);
    const float shift = shiftOf(top);
    if (top > online.top) { // rare once some hundred logits were seen
        online.sum = online.sum * expf(online.top - shift);
        online.top = top;
    }
#pragma unroll
    for (int u = 0; u < kRound; ++u)
        for (int k = 0; k < kPack; ++k)
            online.sum = online.sum + expf(held.at[u].at[k] - shift);
}

// The maximum of the row and its sum of exponentials, in every thread. `held` keeps the last round.
template <int kPack, int kRound>
__device__ Online readRow(
    const float* row, std::int64_t cols, int rounds, LogitRound<kPack, kRound>& held)
{
    __shared__ float warps[kMaxThreads / kWarp];
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    Online online;
    for (int round = 0; round < rounds; ++round) {
        loadRound(row, cols, round, held);
        addRound(online, held);
    }
    const float top = blockMax(online.top, warps, thread, threads);
    const float sum = online.sum * expf(online.top - shiftOf(top));
    return {top, blockSum(sum, warps, thread, threads)};
}

template <typename T>
struct Gradient {
    T* row;
    std::int64_t cols;
    std::int64_t target;
    float factor; // scale / sum of exponentials
    float inverseCap;
    float atTarget; // formed in one piece: softmax - 1 would cancel if the first were stored
};

template <typename T, int kPack, int kRound>
__device__ void storeRound(
    const Gradient<T>& to, int round, float top, const LogitRound<kPack, kRound>& held)
{
#pragma unroll
    for (int u = 0; u < kRound; ++u) {
        const std::int64_t c = columnOf<kPack, kRound>(round, u);
        if (c >= to.cols)
            continue;
        float grad[kPack];
        for (int k = 0; k < kPack; ++k) {
            const float logit = held.at[u].at[k];
            grad[k] = to.factor * expf(logit - top) * slopeOf(logit, to.inverseCap);
            grad[k] = c + k == to.target ? to.atTarget : grad[k];
        }
        storePack(to.row + c, roundPack<T>(grad));
    }
}

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
