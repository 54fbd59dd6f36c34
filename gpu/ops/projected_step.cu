// projectionSigns and projectedStep: what an optimizer that projects a gradient to one number a row
// or a column does beside that projection.
//
// Both work on vectors: their traffic is that of some rows of the weight. One block makes the step,
// because a few sums decide it.
//
// Bits equal those of the CPU device: the order is the one of core/device/light_update.h.

#include "gpu/ops/launchers.h"
#include "gpu/ops/philox.cuh"
#include "gpu/ops/vector_sums.cuh"

namespace mr::gpu {
namespace {

constexpr int kSignThreads = 256;

// signs: (count)
__global__ void __launch_bounds__(kSignThreads) projectionSignsKernel(
    float* signs, std::int64_t count, std::uint64_t key, std::uint64_t counter)
{
    const std::int64_t e = std::int64_t{blockIdx.x} * kSignThreads + threadIdx.x;
    if (e >= count)
        return;
    const uint4 words = philoxWords(key, static_cast<std::uint64_t>(e / 128), counter);
    const auto place = static_cast<unsigned>(e / 32 % 4);
    const std::uint32_t low = (place & 1U) != 0 ? words.y : words.x;
    const std::uint32_t high = (place & 1U) != 0 ? words.w : words.z;
    const std::uint32_t word = (place & 2U) != 0 ? high : low;
    signs[e] = (word >> (e % 32) & 1U) != 0 ? -1.0F : 1.0F;
}

// projected, first, second: (count); squareSums: (rows); norm, size, scalars: one
struct ProjectedStep {
    const float* projected;
    const float* squareSums;
    float* first;
    float* second;
    float* norm;
    float* size;
    const StepScalars* scalars;
    std::int64_t count;
    std::int64_t rows;
};

// AdamW's step of the projection, whose squares are summed by sumAsRow().
struct RatioSquares {
    const float* first;
    const float* second;

    using Held = float;

    __device__ Held load(std::int64_t at) const
    {
        return __fdiv_rn(first[at], __fsqrt_rn(second[at]) + 1e-6F);
    }
    __device__ void add(float (&lanes)[1], Held held) const
    {
        lanes[0] = __fmaf_rn(held, held, lanes[0]);
    }
};

struct VectorSquares {
    const float* values;

    using Held = float;

    __device__ Held load(std::int64_t at) const { return values[at]; }
    __device__ void add(float (&lanes)[1], Held held) const
    {
        lanes[0] = __fmaf_rn(held, held, lanes[0]);
    }
};

// Lengths of AdamW's step, of the projection and of the gradient.
struct StepLengths {
    float step;
    float projected;
    float gradient;
};

// One thread. The norm of the step before becomes that of this one.
__device__ inline float stepFactor(const StepLengths& length, float* norm, int isFirst)
{
    constexpr float kGrowth = 1.01F; // of the norm, in a step
    float factor = __fdiv_rn(length.step, length.projected + 1e-8F);
    float now = factor * length.gradient;
    if (isFirst == 0) {
        const float grown = __fdiv_rn(now, *norm + 1e-8F);
        const float over = __fdiv_rn(grown > kGrowth ? grown : kGrowth, kGrowth);
        factor = __fdiv_rn(factor, over);
        now = __fdiv_rn(now, over);
    }
    *norm = now;
    return factor;
}

// One block of vectorThreads(count); rows is at most count.
__global__ void __launch_bounds__(kMostSumThreads)
    projectedStepKernel(ProjectedStep in, float rate, int isFirst)
{
    __shared__ SumMemory shared;
    if (in.scalars->finite == 0)
        return;
    for (std::int64_t i = threadIdx.x; i < in.count; i += blockDim.x) {
        const float r = in.projected[i];
        in.first[i] = __fmaf_rn(0.1F, r, 0.9F * in.first[i]);
        in.second[i] = __fmaf_rn(0.001F * r, r, 0.999F * in.second[i]);
    }
    __syncthreads();
    const float ratios = sumAsRow<1>(in.count, shared, RatioSquares{in.first, in.second});
    __syncthreads();
    const float squares = sumAsRow<1>(in.count, shared, VectorSquares{in.projected});
    __syncthreads();
    const float gradient = sumAsRow<1>(in.rows, shared, VectorSum{in.squareSums});
    if (threadIdx.x == 0)
        *in.size =
            rate * stepFactor({__fsqrt_rn(ratios), __fsqrt_rn(squares), __fsqrt_rn(gradient)},
                       in.norm, isFirst);
}

} // namespace

Status launchProjectionSigns(const ProjectionSignsArgs& args, cudaStream_t stream)
{
    const std::int64_t count = args.signs.dims[0];
    return launchKernel("projectionSigns", listed<projectionSignsKernel>(),
        {dim3(blocksFor(count, kSignThreads)), dim3(kSignThreads)}, stream, args.signs.as<float>(),
        count, args.key, args.counter);
}

Status launchProjectedStep(const ProjectedStepArgs& args, cudaStream_t stream)
{
    const ProjectedStep step{args.projected.as<const float>(), args.squareSums.as<const float>(),
        args.first.as<float>(), args.second.as<float>(), args.norm.as<float>(),
        args.size.as<float>(), args.scalars.as<const StepScalars>(), args.projected.dims[0],
        args.squareSums.dims[0]};
    return launchKernel("projectedStep", listed<projectedStepKernel>(),
        {dim3(1), dim3(vectorThreads(step.count))}, stream, step, args.rate, args.isFirst ? 1 : 0);
}

} // namespace mr::gpu
