// selectRows and rowAdamw: the rows of a matrix with the largest squares, and AdamW of them.
//
// selectRows  Each row counts the rows before it, then each chosen row counts the chosen ones
//             before it: rows^2 comparisons of numbers that lie in the first cache, every 200
//             updates. At 30,000 rows that is a billion, expected about a millisecond. No barrier,
//             no atomic.
// rowAdamw    A thread looks for its row among the chosen ones by halving, and has done where it is
//             none of them. For the others 12, 10 or 8 bytes moved an element and 16 of moments:
//             bound by memory bandwidth where rows are long, expected.
//
// Bits equal those of the CPU device: the order is the one of core/device/adamw.h.

#include "gpu/ops/adamw_ratio.cuh"
#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/masters.cuh"

namespace mr::gpu {
namespace {

constexpr int kRankThreads = 256;

// squares: (rows), bits of numbers that are at least 0; ranked: (chosen), the largest first.
__global__ void __launch_bounds__(kRankThreads) rankRowsKernel(
    const std::uint32_t* squares, std::int64_t rows, float* ranked, std::int64_t chosen)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * kRankThreads + threadIdx.x;
    if (row >= rows)
        return;
    const std::uint32_t own = squares[row];
    std::int64_t rank = 0;
    for (std::int64_t other = 0; other < rows; ++other) {
        const std::uint32_t bits = squares[other];
        rank += bits > own || (bits == own && other < row) ? 1 : 0;
    }
    if (rank < chosen)
        ranked[rank] = static_cast<float>(row);
}

// ranked, numbers: (chosen), the latter ascending
__global__ void __launch_bounds__(kRankThreads) orderRowsKernel(
    const float* ranked, float* numbers, std::int64_t chosen, const StepScalars* scalars)
{
    const std::int64_t rank = std::int64_t{blockIdx.x} * kRankThreads + threadIdx.x;
    if (rank >= chosen || scalars->finite == 0)
        return;
    const float own = ranked[rank];
    std::int64_t slot = 0;
    for (std::int64_t other = 0; other < chosen; ++other)
        slot += ranked[other] < own ? 1 : 0;
    numbers[slot] = own;
}

// grad: (n); numbers: (chosen); m, v: (chosen, cols); scalars: one
template <MasterPlanes kFormat>
struct RowAdamwOp {
    Masters<kFormat> masters;
    const float* grad;
    const float* numbers;
    float* m;
    float* v;
    const StepScalars* scalars;
    std::int64_t chosen;
    std::int64_t cols;
    AdamwFactors factors;
    float decay;
    bool isFirst;

    template <int kCount>
    struct Held {
        typename Masters<kFormat>::template Held<kCount> masters;
        Pack<float, kCount> grad, m, v;
        std::int64_t kept; // where its moments begin; -1: the row is not chosen
        float clipFactor;
    };

    __device__ bool skips() const { return scalars->finite == 0; }

    // The place of a row among the chosen ones; -1: it is none of them.
    __device__ std::int64_t slotOf(float row) const
    {
        std::int64_t below = 0;
        for (std::int64_t above = chosen; below + 1 < above;) {
            const std::int64_t middle = (below + above) / 2;
            if (numbers[middle] <= row)
                below = middle;
            else
                above = middle;
        }
        return numbers[below] == row ? below : -1;
    }

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        Held<kCount> held = {};
        const std::int64_t element = masters.first + at;
        const std::int64_t row = element / cols;
        const std::int64_t slot = slotOf(static_cast<float>(row));
        held.kept = slot < 0 ? -1 : slot * cols + (element - row * cols);
        if (slot < 0)
            return held;
        masters.template load<kCount>(at, held.masters);
        held.grad = loadPack<kCount>(grad + at);
        held.clipFactor = scalars->clipFactor;
        if (!isFirst) {
            held.m = loadPack<kCount>(m + held.kept);
            held.v = loadPack<kCount>(v + held.kept);
        }
        return held;
    }

    // The order of core/device/adamw.h.
    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        if (held.kept < 0)
            return;
        Pack<float, kCount> nextM = held.m;
        Pack<float, kCount> nextV = held.v;
        masters.template step<kCount>(at, held.masters, [&](int i, float p) {
            const float g = held.grad.at[i] * held.clipFactor;
            const float ratio = adamwRatio(g, nextM.at[i], nextV.at[i], factors);
            return __fmaf_rn(-factors.stepSize, ratio, p * decay);
        });
        storePack(m + held.kept, nextM);
        storePack(v + held.kept, nextV);
    }
};

template <MasterPlanes kFormat>
Status launchChosen(const RowAdamwArgs& args, cudaStream_t stream)
{
    const RowAdamwOp<kFormat> op{mastersOf<kFormat>(args), args.grad.as<const float>(),
        args.numbers.as<const float>(), args.m.as<float>(), args.v.as<float>(),
        args.scalars.as<const StepScalars>(), args.numbers.dims[0], args.cols, args.factors,
        args.decayed ? args.factors.decay : 1.0F, args.isFirst};
    constexpr int kPack = kMasterPack<kFormat>;
    // A pack lies in one row, and in one block of Philox.
    const bool packed = args.cols % kPack == 0 && args.first % kPack == 0 &&
                        fitsPacks(kPack, args.high, args.low, args.grad, args.m, args.v);
    return launchElements<kPack, kMasterUnroll<kFormat>>(
        "rowAdamw", op, args.grad.count(), packed, stream);
}

} // namespace

Status launchSelectRows(const SelectRowsArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.squares.dims[0];
    const std::int64_t chosen = args.numbers.dims[0];
    MR_TRY(launchKernel("selectRows", listed<rankRowsKernel>(),
        {dim3(blocksFor(rows, kRankThreads)), dim3(kRankThreads)}, stream,
        args.squares.as<const std::uint32_t>(), rows, args.ranked.as<float>(), chosen));
    return launchKernel("selectRows", listed<orderRowsKernel>(),
        {dim3(blocksFor(chosen, kRankThreads)), dim3(kRankThreads)}, stream,
        args.ranked.as<const float>(), args.numbers.as<float>(), chosen,
        args.scalars.as<const StepScalars>());
}

Status launchRowAdamw(const RowAdamwArgs& args, cudaStream_t stream)
{
    if (!args.low.data)
        return launchChosen<MasterPlanes::Random16>(args, stream);
    return args.low.dtype == DType::I16 ? launchChosen<MasterPlanes::Halves>(args, stream)
                                        : launchChosen<MasterPlanes::Bits24>(args, stream);
}

} // namespace mr::gpu
