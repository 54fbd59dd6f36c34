// averageSquares, lightStepSize and lightUpdate: optimizers with a number for each row and column
// of a weight, or none.
//
// averageSquares  Vectors: their traffic is that of some rows of the weight. One block sums the
// lightStepSize   averages of rows, because all of them decide each root; at 150,000 rows that is
//                 0.6 MB, expected far below the time of the weight.
// lightUpdate     12, 10 or 8 bytes moved an element (Halves, Bits24, Random16), with roots a
//                 division: bound by memory bandwidth, expected. The roots of columns stay in the
//                 caches.
//
// Bits equal those of the CPU device: the order is the one of core/device/light_update.h.

#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/masters.cuh"
#include "gpu/ops/vector_sums.cuh"

namespace mr::gpu {
namespace {

constexpr int kAverageThreads = 256;

// averages, sums: (count); elements: in each sum
struct AveragedSide {
    float* averages;
    float* sums;
    std::int64_t count;
    float elements;
};

// An average and a step's sum of squares joined.
__device__ inline float nextAverage(
    const AveragedSide& side, std::int64_t i, float past, float present)
{
    constexpr float kLeastSquare = 1e-30F;
    const float mean = __fdiv_rn(side.sums[i], side.elements) + kLeastSquare;
    return __fmaf_rn(present, mean, past * side.averages[i]);
}

// Grid.x covers columns, then rows. Roots of columns are final, those of rows need all rows.
__global__ void __launch_bounds__(kAverageThreads) averageSquaresKernel(
    AveragedSide rows, AveragedSide columns, const StepScalars* scalars, float past, float present)
{
    if (scalars->finite == 0)
        return;
    const std::int64_t i = std::int64_t{blockIdx.x} * kAverageThreads + threadIdx.x;
    if (i < columns.count) {
        const float average = nextAverage(columns, i, past, present);
        columns.averages[i] = average;
        columns.sums[i] = __fsqrt_rn(average);
    } else if (i - columns.count < rows.count) {
        const std::int64_t row = i - columns.count;
        rows.averages[row] = nextAverage(rows, row, past, present);
    }
}

// averages, roots: (rows). One block of vectorThreads().
__global__ void __launch_bounds__(kMostSumThreads) rowRootsKernel(
    const float* averages, float* roots, std::int64_t rows, const StepScalars* scalars)
{
    __shared__ SumMemory shared;
    __shared__ float mean;
    if (scalars->finite == 0)
        return;
    const float sum = sumAsRow<1>(rows, shared, VectorSum{averages});
    if (threadIdx.x == 0)
        mean = __fdiv_rn(sum, static_cast<float>(rows));
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x)
        roots[i] = __fsqrt_rn(__fdiv_rn(averages[i], mean));
}

// updateSums, weightSums: (rows); size: one
struct SizedStep {
    const float* updateSums;
    const float* weightSums;
    float* size;
    std::int64_t rows;
    float count;
    StepRule rule;
    float rate;
    float limit;
};

__device__ inline float stepSizeOf(const SizedStep& step, float rms, float weight)
{
    constexpr float kLeastWeight = 1e-3F;
    if (step.rule == StepRule::Normalised)
        return rms > 0.0F ? __fdiv_rn(step.rate, rms) : 0.0F;
    const float over = __fdiv_rn(rms, step.limit);
    const float rate = step.rule == StepRule::Relative
                           ? step.rate * (weight > kLeastWeight ? weight : kLeastWeight)
                           : step.rate;
    return __fdiv_rn(rate, over > 1.0F ? over : 1.0F);
}

// One block of vectorThreads(). The second sum takes the shared memory of the first.
__global__ void __launch_bounds__(kMostSumThreads) stepSizeKernel(SizedStep step)
{
    __shared__ SumMemory shared;
    const float updates = sumAsRow<1>(step.rows, shared, VectorSum{step.updateSums});
    float weights = 0.0F;
    if (step.rule == StepRule::Relative) {
        __syncthreads();
        weights = sumAsRow<1>(step.rows, shared, VectorSum{step.weightSums});
    }
    if (threadIdx.x == 0)
        *step.size = stepSizeOf(step, __fsqrt_rn(__fdiv_rn(updates, step.count)),
            __fsqrt_rn(__fdiv_rn(weights, step.count)));
}

// high, low, grad: (n); rowRoots: (rows); columnRoots: (cols); size, scalars: one
template <MasterPlanes kFormat, bool kRoots>
struct LightOp {
    Masters<kFormat> masters;
    const float* grad;
    const float* rowRoots;
    const float* columnRoots;
    const float* size;
    const StepScalars* scalars;
    std::int64_t cols;
    float decay;

    template <int kCount>
    struct Held {
        typename Masters<kFormat>::template Held<kCount> masters;
        Pack<float, kCount> grad, columnRoots;
        float rowRoot, clipFactor, size;
    };

    __device__ bool skips() const { return scalars->finite == 0; }

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        Held<kCount> held = {};
        masters.template load<kCount>(at, held.masters);
        held.grad = loadPack<kCount>(grad + at);
        held.clipFactor = scalars->clipFactor;
        held.size = *size;
        if constexpr (kRoots) {
            const std::int64_t element = masters.first + at;
            const std::int64_t row = element / cols;
            held.rowRoot = rowRoots[row];
            held.columnRoots = loadPack<kCount>(columnRoots + (element - row * cols));
        }
        return held;
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        masters.template step<kCount>(at, held.masters, [&](int i, float p) {
            const float g = held.grad.at[i] * held.clipFactor;
            const float u = kRoots ? __fdiv_rn(g, held.rowRoot * held.columnRoots.at[i]) : g;
            return __fmaf_rn(-held.size, u, p * decay);
        });
    }
};

template <MasterPlanes kFormat, bool kRoots>
Status launchLight(const LightUpdateArgs& args, cudaStream_t stream)
{
    using Op = LightOp<kFormat, kRoots>;
    const Op op{mastersOf<kFormat>(args), args.grad.as<const float>(),
        args.rowRoots.as<const float>(), args.columnRoots.as<const float>(),
        args.size.as<const float>(), args.scalars.as<const StepScalars>(), args.cols,
        args.decayed ? args.decay : 1.0F};
    constexpr int kPack = kMasterPack<kFormat>;
    // A pack lies in one row, and in one block of Philox.
    const bool inRow = !kRoots || args.cols % kPack == 0;
    const bool packed = inRow && args.first % kPack == 0 &&
                        fitsPacks(kPack, args.high, args.low, args.grad, args.columnRoots);
    return launchElements<kPack, kMasterUnroll<kFormat>>(
        "lightUpdate", op, args.grad.count(), packed, stream);
}

template <MasterPlanes kFormat>
Status launchLight(const LightUpdateArgs& args, cudaStream_t stream)
{
    return args.rowRoots.data ? launchLight<kFormat, true>(args, stream)
                              : launchLight<kFormat, false>(args, stream);
}

} // namespace

Status launchAverageSquares(const AverageSquaresArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.rows.dims[0];
    const std::int64_t cols = args.columns.dims[0];
    const auto* scalars = args.scalars.as<const StepScalars>();
    const AveragedSide ofRows{
        args.rows.as<float>(), args.rowSums.as<float>(), rows, static_cast<float>(cols)};
    const AveragedSide ofColumns{
        args.columns.as<float>(), args.columnSums.as<float>(), cols, static_cast<float>(rows)};
    MR_TRY(launchKernel("averageSquares", listed<averageSquaresKernel>(),
        {dim3(blocksFor(rows + cols, kAverageThreads)), dim3(kAverageThreads)}, stream, ofRows,
        ofColumns, scalars, args.past, args.present));
    return launchKernel("averageSquares", listed<rowRootsKernel>(),
        {dim3(1), dim3(vectorThreads(rows))}, stream, args.rows.as<const float>(),
        args.rowSums.as<float>(), rows, scalars);
}

Status launchStepSize(const StepSizeArgs& args, cudaStream_t stream)
{
    const SizedStep step{args.updateSums.as<const float>(), args.weightSums.as<const float>(),
        args.size.as<float>(), args.updateSums.dims[0], static_cast<float>(args.count), args.rule,
        args.rate, args.limit};
    return launchKernel("lightStepSize", listed<stepSizeKernel>(),
        {dim3(1), dim3(vectorThreads(step.rows))}, stream, step);
}

Status launchLightUpdate(const LightUpdateArgs& args, cudaStream_t stream)
{
    if (!args.low.data)
        return launchLight<MasterPlanes::Random16>(args, stream);
    return args.low.dtype == DType::I16 ? launchLight<MasterPlanes::Halves>(args, stream)
                                        : launchLight<MasterPlanes::Bits24>(args, stream);
}

} // namespace mr::gpu
