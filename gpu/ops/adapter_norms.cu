// adapterNorms: the norm of every row of W + scale B A, which is never stored.
//
// A block takes four rows, so a pack of A is loaded once for them: with a rank of 16, 64 fused
// multiply-adds an element of W in F32, expected to take most of the time. Elements of B are read
// at one address by a whole warp.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kAdaptedThreads = 256;
constexpr int kAdaptedRows = 4; // of a block

// weight (rows, cols), a (rank, cols), b (rows, rank), magnitude, norms, factors (rows)
template <typename T>
struct AdaptedRows {
    const T* weight;
    const T* a;
    const T* b;
    const T* magnitude;
    float* norms;
    float* factors;
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t rank;
    float scale;
};

// Adds the squares of one pack of columns of row first, first + 1, ... to `squares`. Rows past the
// last are the last.
template <typename T, int kPack>
__device__ void addAdaptedSquares(const AdaptedRows<T>& in, std::int64_t first, std::int64_t column,
    float (&squares)[kAdaptedRows])
{
    const auto row = [&](int r) { return min(first + r, in.rows - 1); };
    float delta[kAdaptedRows][kPack] = {};
    for (std::int64_t k = 0; k < in.rank; ++k) {
        const auto a = loadPack<kPack>(in.a + k * in.cols + column);
#pragma unroll
        for (int r = 0; r < kAdaptedRows; ++r) {
            const float b = toFloat(in.b[row(r) * in.rank + k]);
            for (int i = 0; i < kPack; ++i)
                delta[r][i] = __fmaf_rn(b, toFloat(a.at[i]), delta[r][i]);
        }
    }
#pragma unroll
    for (int r = 0; r < kAdaptedRows; ++r) {
        const auto weight = loadPack<kPack>(in.weight + row(r) * in.cols + column);
        for (int i = 0; i < kPack; ++i) {
            const float value = __fmaf_rn(in.scale, delta[r][i], toFloat(weight.at[i]));
            squares[r] = __fmaf_rn(value, value, squares[r]);
        }
    }
}

// Block of kAdaptedThreads, grid.x covers the rows by kAdaptedRows. Thread t takes packs t, t +
// 256, ... of columns in order; then the tree of blockSum().
template <typename T, int kPack>
__global__ void __launch_bounds__(kAdaptedThreads) adapterNormsKernel(AdaptedRows<T> in)
{
    __shared__ float warps[kAdaptedThreads / kWarp];
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t first = std::int64_t{blockIdx.x} * kAdaptedRows;
    float squares[kAdaptedRows] = {};
    for (std::int64_t column = std::int64_t{thread} * kPack; column < in.cols;
         column += std::int64_t{kAdaptedThreads} * kPack)
        addAdaptedSquares<T, kPack>(in, first, column, squares);
#pragma unroll
    for (int r = 0; r < kAdaptedRows; ++r) {
        const float norm = __fsqrt_rn(blockSum(squares[r], warps, thread, kAdaptedThreads));
        if (thread == 0 && first + r < in.rows) {
            in.norms[first + r] = norm;
            in.factors[first + r] =
                norm > 0.0F ? __fdiv_rn(toFloat(in.magnitude[first + r]), norm) : 0.0F;
        }
    }
}

template <typename T>
Status launchNorms(const AdapterNormsArgs& args, cudaStream_t stream)
{
    const AdaptedRows<T> rows{args.weight.as<const T>(), args.a.as<const T>(), args.b.as<const T>(),
        args.magnitude.as<const T>(), args.norms.as<float>(), args.factors.as<float>(),
        args.weight.dims[0], args.weight.dims[1], args.a.dims[0], args.scale};
    constexpr int kPack = kPackOf<T>;
    const bool packed = rows.cols % kPack == 0 && fitsPacks(kPack, args.weight, args.a);
    LaunchShape shape;
    shape.grid = dim3(blocksFor(rows.rows, kAdaptedRows));
    shape.block = dim3(kAdaptedThreads);
    const auto kernel =
        packed ? listed<adapterNormsKernel<T, kPack>>() : listed<adapterNormsKernel<T, 1>>();
    return launchKernel("adapterNorms", kernel, shape, stream, rows);
}

} // namespace

Status launchAdapterNorms(const AdapterNormsArgs& args, cudaStream_t stream)
{
    return args.weight.dtype == DType::BF16 ? launchNorms<Bf16>(args, stream)
                                            : launchNorms<float>(args, stream);
}

} // namespace mr::gpu
