// columnEnergy, gatherColumns, scatterColumns: the ops of ZenFlow on a gradient.
//
// columnEnergy gives the energy of each column of a gradient, once per selection interval;
// column_sums.cuh describes how blocks and threads share the columns.
//
// Gathering and scattering move single elements, about every tenth of a row, so there is nothing to
// pack: nearly every sector of the wide side is touched, and that traffic is the bound. A thread
// reads its column's index once and takes four rows with it, all four in flight.

#include "gpu/ops/column_sums.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

constexpr int kColumnRows = 4; // per thread

struct Squares {
    static __device__ float add(float sum, float value) { return __fmaf_rn(value, value, sum); }
};

struct Magnitudes {
    static __device__ float add(float sum, float value) { return sum + fabsf(value); }
};

// wide (rows, cols), columns (picked), narrow (rows, picked).
// rowShape(rows / kColumnRows, picked, 1): a thread's rows are a block's height apart.
template <typename T>
struct Picks {
    const std::int32_t* columns;
    std::int64_t rows, cols, picked;

    __device__ std::int64_t row(int u) const
    {
        return (std::int64_t{blockIdx.x} * kColumnRows + u) * blockDim.y + threadIdx.y;
    }
};

template <typename T>
__global__ void __launch_bounds__(kRowBlockThreads)
    gatherColumnsKernel(const T* __restrict__ wide, T* __restrict__ narrow, Picks<T> picks)
{
    const std::int64_t k = itemOfThread(1, 0);
    if (k >= picks.picked)
        return;
    const std::int64_t column = picks.columns[k];
    T held[kColumnRows];
#pragma unroll
    for (int u = 0; u < kColumnRows; ++u)
        if (picks.row(u) < picks.rows)
            held[u] = wide[picks.row(u) * picks.cols + column];
#pragma unroll
    for (int u = 0; u < kColumnRows; ++u)
        if (picks.row(u) < picks.rows)
            narrow[picks.row(u) * picks.picked + k] = held[u];
}

template <typename T>
__global__ void __launch_bounds__(kRowBlockThreads)
    scatterColumnsKernel(const T* __restrict__ narrow, T* __restrict__ wide, Picks<T> picks)
{
    const std::int64_t k = itemOfThread(1, 0);
    if (k >= picks.picked)
        return;
    const std::int64_t column = picks.columns[k];
    T held[kColumnRows];
#pragma unroll
    for (int u = 0; u < kColumnRows; ++u)
        if (picks.row(u) < picks.rows)
            held[u] = narrow[picks.row(u) * picks.picked + k];
#pragma unroll
    for (int u = 0; u < kColumnRows; ++u)
        if (picks.row(u) < picks.rows)
            wide[picks.row(u) * picks.cols + column] = held[u];
}

template <typename T>
LaunchShape pickShape(const Picks<T>& picks)
{
    return rowShape((picks.rows + kColumnRows - 1) / kColumnRows, picks.picked, 1);
}

template <typename T>
Status gather(const GatherColumnsArgs& args, cudaStream_t stream)
{
    const Picks<T> picks{args.columns.as<const std::int32_t>(), args.x.dims[0], args.x.dims[1],
        args.columns.dims[0]};
    return launchKernel("gatherColumns", listed<gatherColumnsKernel<T>>(), pickShape(picks), stream,
        args.x.as<const T>(), args.out.as<T>(), picks);
}

template <typename T>
Status scatter(const ScatterColumnsArgs& args, cudaStream_t stream)
{
    const Picks<T> picks{args.columns.as<const std::int32_t>(), args.out.dims[0], args.out.dims[1],
        args.columns.dims[0]};
    return launchKernel("scatterColumns", listed<scatterColumnsKernel<T>>(), pickShape(picks),
        stream, args.x.as<const T>(), args.out.as<T>(), picks);
}

template <typename T>
Status energy(const ColumnEnergyArgs& args, cudaStream_t stream)
{
    return args.absolute ? launchColumnSums<Magnitudes, T>(
                               "columnEnergy", args.grad, args.energy, false, stream)
                         : launchColumnSums<Squares, T>(
                               "columnEnergy", args.grad, args.energy, false, stream);
}

} // namespace

Status launchColumnEnergy(const ColumnEnergyArgs& args, cudaStream_t stream)
{
    return args.grad.dtype == DType::BF16 ? energy<Bf16>(args, stream)
                                          : energy<float>(args, stream);
}

Status launchGatherColumns(const GatherColumnsArgs& args, cudaStream_t stream)
{
    if (args.out.count() == 0)
        return {};
    return args.x.dtype == DType::BF16 ? gather<Bf16>(args, stream) : gather<float>(args, stream);
}

Status launchScatterColumns(const ScatterColumnsArgs& args, cudaStream_t stream)
{
    if (args.x.count() == 0)
        return {};
    return args.out.dtype == DType::BF16 ? scatter<Bf16>(args, stream)
                                         : scatter<float>(args, stream);
}

} // namespace mr::gpu
