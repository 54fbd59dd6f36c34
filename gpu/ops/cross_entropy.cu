// Cross-entropy of rows of logits, with its gradient.
//
// One block a row, for a vocabulary of up to a quarter of a million. The first pass keeps a running
// maximum and the sum of exponentials under it in every thread (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018), so the logits are read once for the loss; the second
// reads them again for the gradient, from the end of the row to its start: the L2 cache still holds
// the logits read last.
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

constexpr int kMaxThreads = 1024;
constexpr int kLossUnroll = 4; // packs in flight a thread
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

// Round `round` of a thread's packs: kLossUnroll of them, a block's width apart. Past the end:
// kNone.
template <int kPack>
__device__ std::int64_t columnOf(std::int64_t round, int u)
{
    return ((round * kLossUnroll + u) * blockDim.x + threadIdx.x) * kPack;
}

template <int kPack>
__device__ void loadRound(const float* row, std::int64_t cols, std::int64_t round,
    Pack<float, kPack> (&held)[kLossUnroll])
{
#pragma unroll
    for (int u = 0; u < kLossUnroll; ++u) {
        const std::int64_t c = columnOf<kPack>(round, u);
        if (c < cols)
            held[u] = loadPack<kPack>(row + c);
        else
            for (int k = 0; k < kPack; ++k)
                held[u].at[k] = kNone;
    }
}

template <int kPack>
__device__ void addRound(Online& online, const Pack<float, kPack> (&held)[kLossUnroll])
{
    float top = online.top;
#pragma unroll
    for (int u = 0; u < kLossUnroll; ++u)
        for (int k = 0; k < kPack; ++k)
            top = fmaxf(top, held[u].at[k]);
    const float shift = shiftOf(top);
    if (top > online.top) { // rare once some hundred logits were seen
        online.sum = online.sum * expf(online.top - shift);
        online.top = top;
    }
#pragma unroll
    for (int u = 0; u < kLossUnroll; ++u)
        for (int k = 0; k < kPack; ++k)
            online.sum = online.sum + expf(held[u].at[k] - shift);
}

// The maximum of the row and its sum of exponentials, in every thread.
template <int kPack>
__device__ Online readRow(const float* row, std::int64_t cols, std::int64_t rounds)
{
    __shared__ float warps[kMaxThreads / kWarp];
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    Online online;
    for (std::int64_t round = 0; round < rounds; ++round) {
        Pack<float, kPack> held[kLossUnroll];
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

template <typename T, int kPack>
__device__ void storeRound(const Gradient<T>& to, std::int64_t round, float top,
    const Pack<float, kPack> (&held)[kLossUnroll])
{
#pragma unroll
    for (int u = 0; u < kLossUnroll; ++u) {
        const std::int64_t c = columnOf<kPack>(round, u);
        if (c >= to.cols)
            continue;
        float grad[kPack];
        for (int k = 0; k < kPack; ++k) {
            grad[k] = to.factor * expf(held[u].at[k] - top) * slopeOf(held[u].at[k], to.inverseCap);
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
template <typename T, int kPack>
__global__ void __launch_bounds__(kMaxThreads) crossEntropyKernel(Rows<T> a)
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
    const std::int64_t perRound = static_cast<std::int64_t>(blockDim.x) * kPack * kLossUnroll;
    const std::int64_t rounds = (a.cols + perRound - 1) / perRound;
    const Online whole = readRow<kPack>(logits, a.cols, rounds);
    if (threadIdx.x == 0)
        a.losses[row] = logf(whole.sum) + (whole.top - targetLogit);
    if (!a.gradLogits)
        return;
    const Gradient<T> to{a.gradLogits + row * a.cols, a.cols, target, __fdiv_rn(a.scale, whole.sum),
        a.inverseCap,
        a.scale * (__fdiv_rn(expf(targetLogit - whole.top), whole.sum) - 1.0F) *
            slopeOf(targetLogit, a.inverseCap)};
    for (std::int64_t round = rounds - 1; round >= 0; --round) {
        Pack<float, kPack> held[kLossUnroll];
        loadRound(logits, a.cols, round, held);
        storeRound(to, round, whole.top, held);
    }
}

template <typename T>
Status launch(const CrossEntropyArgs& args, cudaStream_t stream)
{
    const Rows<T> rows{args.logits.as<const float>(), args.targets.as<const std::int32_t>(),
        args.losses.as<float>(), args.gradLogits.as<T>(), args.logits.dims[1], args.scale,
        args.softcap > 0.0F ? 1.0F / args.softcap : 0.0F};
    constexpr int kPack = kPackOf<float>;
    const bool packed = rows.cols % kPack == 0 && fitsPacks(kPack, args.logits, args.gradLogits);
    const std::int64_t perWarp = std::int64_t{kWarp} * kLossUnroll * (packed ? kPack : 1);
    const std::int64_t warps = (rows.cols + perWarp - 1) / perWarp;
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(args.logits.dims[0]));
    shape.block =
        dim3(static_cast<unsigned>(std::clamp<std::int64_t>(warps * kWarp, kWarp, kMaxThreads)));
    const auto kernel =
        packed ? listed<crossEntropyKernel<T, kPack>>() : listed<crossEntropyKernel<T, 1>>();
    return launchKernel("crossEntropy", kernel, shape, stream, rows);
}

} // namespace

Status launchCrossEntropy(const CrossEntropyArgs& args, cudaStream_t stream)
{
    return args.gradLogits.data && args.gradLogits.dtype == DType::BF16
               ? launch<Bf16>(args, stream)
               : launch<float>(args, stream);
}

} // namespace mr::gpu
