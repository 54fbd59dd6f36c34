// Softmax of rows whose vocabulary comes in parts: each part by itself, all together, the gradient.
//
// A part is a row of softmax_rows.cuh, one block each. It is short, so rounds are.

#include "gpu/ops/launchers.h"
#include "gpu/ops/softmax_rows.cuh"

#include <algorithm>

namespace mr::gpu {
namespace {

constexpr int kJoinRowThreads = 128;

// logits (rows, cols); tops, sums (rows, parts), of which each block writes one element
struct PartRows {
    const float* logits;
    const std::int32_t* targets;
    float* tops;
    float* sums;
    float* targetLogits;
    std::int64_t cols;
    std::int64_t parts;
    std::int64_t first; // column of the vocabulary
};

__device__ inline int shortRounds(std::int64_t cols, int threads, int pack)
{
    const std::int64_t perRound = static_cast<std::int64_t>(threads) * pack * kShortRound;
    return static_cast<int>((cols + perRound - 1) / perRound);
}

// Block b: row b, any whole number of warps.
template <int kPack>
__global__ void __launch_bounds__(kMaxThreads, 2) softmaxPartKernel(PartRows a)
{
    const std::int64_t row = blockIdx.x;
    const float* logits = a.logits + row * a.cols;
    LogitRound<kPack, kShortRound> held;
    const Online part =
        readRow(logits, a.cols, shortRounds(a.cols, static_cast<int>(blockDim.x), kPack), held);
    if (threadIdx.x != 0)
        return;
    a.tops[row * a.parts] = part.top;
    a.sums[row * a.parts] = part.sum;
    const std::int64_t column = a.targets[row] - a.first;
    if (column >= 0 && column < a.cols)
        a.targetLogits[row] = logits[column];
}

// logits, gradLogits (rows, cols), which may be the same; the others (rows)
template <typename T>
struct GradientRows {
    const float* logits;
    const std::int32_t* targets;
    const float* top;
    const float* total;
    T* gradLogits;
    std::int64_t cols;
    std::int64_t first;
    float scale;
    float inverseCap; // 0: the logits have no cap
};

template <typename T, int kPack>
__device__ void zeroRow(T* row, std::int64_t cols)
{
    const float zeros[kPack] = {};
    const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * kPack;
    for (std::int64_t c = static_cast<std::int64_t>(threadIdx.x) * kPack; c < cols; c += step)
        storePack(row + c, roundPack<T>(zeros));
}

// Block b: row b, any whole number of warps. A thread writes what it alone has read.
template <typename T, int kPack>
__global__ void __launch_bounds__(kMaxThreads, 2) softmaxGradientKernel(GradientRows<T> a)
{
    const std::int64_t row = blockIdx.x;
    const float* logits = a.logits + row * a.cols;
    T* grad = a.gradLogits + row * a.cols;
    const std::int32_t target = a.targets[row];
    if (target < 0) {
        zeroRow<T, kPack>(grad, a.cols);
        return;
    }
    const float top = a.top[row];
    const float total = a.total[row];
    const std::int64_t column = target - a.first;
    float atTarget = 0.0F;
    if (column >= 0 && column < a.cols) {
        const float logit = logits[column];
        atTarget =
            a.scale * (__fdiv_rn(expf(logit - top), total) - 1.0F) * slopeOf(logit, a.inverseCap);
    }
    __syncthreads(); // the gradient may overwrite the target's logit
    const Gradient<T> to{grad, a.cols, column, __fdiv_rn(a.scale, total), a.inverseCap, atTarget};
    LogitRound<kPack, kShortRound> held;
    const int rounds = shortRounds(a.cols, static_cast<int>(blockDim.x), kPack);
    for (int round = 0; round < rounds; ++round) {
        loadRound(logits, a.cols, round, held);
        storeRound(to, round, top, held);
    }
}

// tops, sums (rows, parts); the others (rows)
struct RowsToJoin {
    const float* tops;
    const float* sums;
    const std::int32_t* targets;
    const float* targetLogits;
    float* top;
    float* total;
    float* losses;
    std::int64_t rows;
    std::int64_t parts;
};

// A thread a row.
__global__ void __launch_bounds__(kJoinRowThreads) joinSoftmaxKernel(RowsToJoin a)
{
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kJoinRowThreads + threadIdx.x;
    if (row >= a.rows)
        return;
    const float* tops = a.tops + row * a.parts;
    const float* sums = a.sums + row * a.parts;
    float top = tops[0];
    for (std::int64_t p = 1; p < a.parts; ++p)
        top = fmaxf(top, tops[p]);
    const float shift = shiftOf(top);
    float total = 0.0F;
    for (std::int64_t p = 0; p < a.parts; ++p)
        total = __fmaf_rn(sums[p], expf(tops[p] - shift), total);
    a.top[row] = top;
    a.total[row] = total;
    a.losses[row] = a.targets[row] < 0 ? 0.0F : logf(total) + (top - a.targetLogits[row]);
}

// A block a row, of as many warps as its columns fill in a round.
LaunchShape shapeOf(const TensorView& logits, int pack)
{
    const std::int64_t perWarp = std::int64_t{kWarp} * pack * kShortRound;
    const std::int64_t warps = (logits.dims[1] + perWarp - 1) / perWarp;
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(logits.dims[0]));
    shape.block =
        dim3(static_cast<unsigned>(std::clamp<std::int64_t>(warps * kWarp, kWarp, kMaxThreads)));
    return shape;
}

template <int kPack>
Status launchPart(const SoftmaxPartArgs& args, cudaStream_t stream)
{
    const PartRows rows{args.logits.as<const float>(), args.targets.as<const std::int32_t>(),
        args.tops.as<float>() + args.part, args.sums.as<float>() + args.part,
        args.targetLogits.as<float>(), args.logits.dims[1], args.tops.dims[1], args.first};
    return launchKernel("softmaxPart", listed<softmaxPartKernel<kPack>>(),
        shapeOf(args.logits, kPack), stream, rows);
}

template <typename T, int kPack>
Status launchGradientPacks(const SoftmaxGradientArgs& args, cudaStream_t stream)
{
    const GradientRows<T> rows{args.logits.as<const float>(), args.targets.as<const std::int32_t>(),
        args.top.as<const float>(), args.total.as<const float>(), args.gradLogits.as<T>(),
        args.logits.dims[1], args.first, args.scale,
        args.softcap > 0.0F ? 1.0F / args.softcap : 0.0F};
    return launchKernel("softmaxGradient", listed<softmaxGradientKernel<T, kPack>>(),
        shapeOf(args.logits, kPack), stream, rows);
}

template <typename T>
Status launchGradient(const SoftmaxGradientArgs& args, cudaStream_t stream)
{
    const bool fits = args.logits.dims[1] % kLogitPack == 0 &&
                      fitsPacks(kLogitPack, args.logits, args.gradLogits);
    return fits ? launchGradientPacks<T, kLogitPack>(args, stream)
                : launchGradientPacks<T, 1>(args, stream);
}

} // namespace

Status launchSoftmaxPart(const SoftmaxPartArgs& args, cudaStream_t stream)
{
    const bool fits = args.logits.dims[1] % kLogitPack == 0 && fitsPacks(kLogitPack, args.logits);
    return fits ? launchPart<kLogitPack>(args, stream) : launchPart<1>(args, stream);
}

Status launchJoinSoftmax(const JoinSoftmaxArgs& args, cudaStream_t stream)
{
    const RowsToJoin rows{args.tops.as<const float>(), args.sums.as<const float>(),
        args.targets.as<const std::int32_t>(), args.targetLogits.as<const float>(),
        args.top.as<float>(), args.total.as<float>(), args.losses.as<float>(), args.tops.dims[0],
        args.tops.dims[1]};
    return launchKernel("joinSoftmax", listed<joinSoftmaxKernel>(),
        {dim3(blocksFor(rows.rows, kJoinRowThreads)), dim3(kJoinRowThreads)}, stream, rows);
}

Status launchSoftmaxGradient(const SoftmaxGradientArgs& args, cudaStream_t stream)
{
    return args.gradLogits.dtype == DType::BF16 ? launchGradient<Bf16>(args, stream)
                                                : launchGradient<float>(args, stream);
}

} // namespace mr::gpu
