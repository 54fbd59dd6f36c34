// scaleColumns: every column of a window times its factor.
//
// A thread takes two packs of a row (rowShape()): bound by memory bandwidth, expected. Factors and
// bias are read once a row and stay in the caches.
//
// Bits equal those of the CPU device: one rounding an element.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kScaledPacks = 2; // per thread

// x, out: windows of `cols` columns in rows of xRow and outRow; factors, bias (cols), bias null:
// none. x may be out.
template <typename T>
struct ScaledColumns {
    const T* x;
    const float* factors;
    const T* bias;
    T* out;
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t xRow;
    std::int64_t outRow;
};

// rowShape(rows, cols / kPack, kScaledPacks)
template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads) scaleColumnsKernel(ScaledColumns<T> in)
{
    const std::int64_t row = rowOfThread();
    if (row >= in.rows)
        return;
    Pack<T, kPack> x[kScaledPacks];
#pragma unroll
    for (int u = 0; u < kScaledPacks; ++u) {
        const std::int64_t c = itemOfThread(kScaledPacks, u) * kPack;
        if (c < in.cols)
            x[u] = loadPack<kPack>(in.x + row * in.xRow + c);
    }
#pragma unroll
    for (int u = 0; u < kScaledPacks; ++u) {
        const std::int64_t c = itemOfThread(kScaledPacks, u) * kPack;
        if (c >= in.cols)
            continue;
        const auto factors = loadPack<kPack>(in.factors + c);
        float scaled[kPack];
        if (in.bias) {
            const auto bias = loadPack<kPack>(in.bias + c);
            for (int i = 0; i < kPack; ++i)
                scaled[i] = __fmaf_rn(
                    factors.at[i], toFloat(x[u].at[i]) - toFloat(bias.at[i]), toFloat(bias.at[i]));
        } else {
            for (int i = 0; i < kPack; ++i)
                scaled[i] = factors.at[i] * toFloat(x[u].at[i]);
        }
        storePack(in.out + row * in.outRow + c, roundPack<T>(scaled));
    }
}

template <typename T, int kPack>
Status launch(const ScaledColumns<T>& columns, cudaStream_t stream)
{
    return launchKernel("scaleColumns", listed<scaleColumnsKernel<T, kPack>>(),
        rowShape(columns.rows, columns.cols / kPack, kScaledPacks), stream, columns);
}

template <typename T>
Status launch(const ScaleColumnsArgs& args, cudaStream_t stream)
{
    const ScaledColumns<T> columns{args.x.matrix.as<const T>() + args.x.first,
        args.factors.as<const float>(), args.bias.as<const T>(),
        args.out.matrix.as<T>() + args.out.first, args.x.matrix.dims[0], args.x.count,
        args.x.matrix.dims[1], args.out.matrix.dims[1]};
    constexpr int kPack = kPackOf<T>;
    const auto isWhole = [](const ColumnWindow& window) {
        return window.first % kPack == 0 && window.count % kPack == 0 &&
               window.matrix.dims[1] % kPack == 0 && fitsPacks(kPack, window.matrix);
    };
    const bool packed =
        isWhole(args.x) && isWhole(args.out) && fitsPacks(kPack, args.factors, args.bias);
    return packed ? launch<T, kPack>(columns, stream) : launch<T, 1>(columns, stream);
}

} // namespace

Status launchScaleColumns(const ScaleColumnsArgs& args, cudaStream_t stream)
{
    if (args.x.matrix.dims[0] == 0 || args.x.count == 0)
        return {};
    return args.x.matrix.dtype == DType::BF16 ? launch<Bf16>(args, stream)
                                              : launch<float>(args, stream);
}

} // namespace mr::gpu
