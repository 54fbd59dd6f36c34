// The gated norm of heads and its backward pass.
//
// A warp a head, packs of kGatedPack elements a lane: a head of 128 is one pack of each lane. A
// backward block has the kNormRowBlock heads whose weight's gradient is summed in order, first by
// columns, then by rows, which find them in the first cache.

#include "core/device/recurrent_ops.h"
#include "gpu/ops/exact_functions.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/norm_rows.cuh"

namespace mr::gpu {
namespace {

constexpr int kGatedThreads = 256;
constexpr int kGatedWarps = kGatedThreads / kWarp;
constexpr int kGatedPack = 4;

// x (rows, dim): rows are heads; gate at its first column, rows of `gateColumns` for all heads of a
// token.
template <typename T>
struct GatedHeads {
    const T* x;
    const T* gate;
    const T* weight;
    std::int64_t rows, gateColumns;
    int heads, dim;

    __device__ std::int64_t gateOf(std::int64_t row) const
    {
        return row / heads * gateColumns + row % heads * dim;
    }
};

__device__ float gatedSilu(float x)
{
    return x * exactSigmoid(x);
}

// A warp a row; grid.x covers the rows.
template <typename T, int kPack>
__global__ void __launch_bounds__(kGatedThreads)
    gatedNormKernel(GatedHeads<T> a, T* out, float* rstds, float eps)
{
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const std::int64_t row =
        std::int64_t{blockIdx.x} * kGatedWarps + static_cast<int>(threadIdx.x) / kWarp;
    if (row >= a.rows)
        return;
    const T* x = a.x + row * a.dim;
    const T* gate = a.gate + a.gateOf(row);
    float squares = 0.0F;
    for (int c = lane * kPack; c < a.dim; c += kWarp * kPack)
        squares = addSquares(loadPack<kPack>(x + c), squares);
    const float rstd = rstdOf(warpSum(squares), a.dim, eps);
    if (lane == 0)
        rstds[row] = rstd;
    for (int c = lane * kPack; c < a.dim; c += kWarp * kPack) {
        const auto value = loadPack<kPack>(x + c);
        const auto z = loadPack<kPack>(gate + c);
        const auto weight = loadPack<kPack>(a.weight + c);
        float result[kPack];
        for (int k = 0; k < kPack; ++k)
            result[k] = (toFloat(weight.at[k]) * (toFloat(value.at[k]) * rstd)) *
                        gatedSilu(toFloat(z.at[k]));
        storePack(out + row * a.dim + c, roundPack<T>(result));
    }
}

// partial (blocks, dim). gradGate is laid out as gate, and may be it.
template <typename T>
struct GatedGradients {
    GatedHeads<T> in;
    const T* gradOut;
    const float* rstd;
    T* gradX;
    T* gradGate;
    float* partial;
};

template <typename T, int kPack>
struct GatedPacks {
    Pack<T, kPack> grad, x, gate, weight;
};

template <int kPack, typename T>
__device__ GatedPacks<T, kPack> gatedPacks(
    const GatedGradients<T>& g, std::int64_t row, const T* gate, int c)
{
    return {loadPack<kPack>(g.gradOut + row * g.in.dim + c),
        loadPack<kPack>(g.in.x + row * g.in.dim + c), loadPack<kPack>(gate + c),
        loadPack<kPack>(g.in.weight + c)};
}

// grad weight s(z)
template <typename T, int kPack>
__device__ float gatedTerm(const GatedPacks<T, kPack>& p, int k)
{
    return (toFloat(p.grad.at[k]) * toFloat(p.weight.at[k])) * gatedSilu(toFloat(p.gate.at[k]));
}

// Both gradients of one row; a warp.
template <typename T, int kPack>
__device__ void gatedRow(const GatedGradients<T>& g, std::int64_t row)
{
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const std::int64_t gateAt = g.in.gateOf(row);
    const float rstd = g.rstd[row];
    float triples = 0.0F;
    for (int c = lane * kPack; c < g.in.dim; c += kWarp * kPack) {
        const auto p = gatedPacks<kPack>(g, row, g.in.gate + gateAt, c);
        for (int k = 0; k < kPack; ++k)
            triples = __fmaf_rn(gatedTerm(p, k), toFloat(p.x.at[k]), triples);
    }
    const float mean = meanOfTriples(warpSum(triples), rstd, g.in.dim);
    for (int c = lane * kPack; c < g.in.dim; c += kWarp * kPack) {
        const auto p = gatedPacks<kPack>(g, row, g.in.gate + gateAt, c);
        float gradX[kPack];
        float gradGate[kPack];
        for (int k = 0; k < kPack; ++k) {
            const float normed = toFloat(p.x.at[k]) * rstd;
            const float z = toFloat(p.gate.at[k]);
            const float s = exactSigmoid(z);
            gradX[k] = rstd * __fmaf_rn(-normed, mean, gatedTerm(p, k));
            gradGate[k] = ((toFloat(p.grad.at[k]) * toFloat(p.weight.at[k])) * normed) *
                          (s * (1.0F + z * (1.0F - s)));
        }
        storePack(g.gradX + row * g.in.dim + c, roundPack<T>(gradX));
        storePack(g.gradGate + gateAt + c, roundPack<T>(gradGate));
    }
}

// A block has kNormRowBlock rows.
template <typename T, int kPack>
__global__ void __launch_bounds__(kGatedThreads) gatedNormBackwardKernel(GatedGradients<T> g)
{
    const auto thread = static_cast<int>(threadIdx.x);
    const std::int64_t first = std::int64_t{blockIdx.x} * kNormRowBlock;
    const std::int64_t end = min(g.in.rows, first + kNormRowBlock);
    for (int c = thread; c < g.in.dim; c += kGatedThreads) {
        float sum = 0.0F;
#pragma unroll 4
        for (std::int64_t row = first; row < end; ++row) {
            const float normed = toFloat(g.in.x[row * g.in.dim + c]) * g.rstd[row];
            const float z = toFloat(g.in.gate[g.in.gateOf(row) + c]);
            sum = __fmaf_rn(toFloat(g.gradOut[row * g.in.dim + c]), normed * gatedSilu(z), sum);
        }
        g.partial[std::int64_t{blockIdx.x} * g.in.dim + c] = sum;
    }
    __syncthreads(); // the columns have read gates that are overwritten
    for (std::int64_t row = first + thread / kWarp; row < end; row += kGatedWarps)
        gatedRow<T, kPack>(g, row);
}

template <typename T, typename Args>
GatedHeads<T> gatedHeads(const Args& args)
{
    const std::int64_t dim = args.weight.dims[0];
    const std::int64_t heads = args.x.dims[1] / dim;
    return {args.x.template as<const T>(), args.gate.template as<const T>() + args.firstColumn,
        args.weight.template as<const T>(), args.x.dims[0] * heads, args.gate.dims[1],
        static_cast<int>(heads), static_cast<int>(dim)};
}

template <typename Args, typename... Views>
bool gatedFitsPacks(const Args& args, const Views&... others)
{
    const bool fits = args.weight.dims[0] % kGatedPack == 0 && args.firstColumn % kGatedPack == 0 &&
                      args.gate.dims[1] % kGatedPack == 0;
    return fits && fitsPacks(kGatedPack, args.x, args.gate, args.weight, others...);
}

template <typename T>
Status gatedForward(const GatedNormArgs& args, cudaStream_t stream)
{
    const GatedHeads<T> a = gatedHeads<T>(args);
    LaunchShape shape;
    shape.grid = dim3(blocksFor(a.rows, kGatedWarps));
    shape.block = dim3(kGatedThreads);
    const auto kernel = gatedFitsPacks(args, args.out) ? listed<gatedNormKernel<T, kGatedPack>>()
                                                       : listed<gatedNormKernel<T, 1>>();
    return launchKernel(
        "gatedNorm", kernel, shape, stream, a, args.out.as<T>(), args.rstd.as<float>(), args.eps);
}

template <typename T>
Status gatedBackward(const GatedNormBackwardArgs& args, cudaStream_t stream)
{
    const GatedGradients<T> g{gatedHeads<T>(args), args.gradOut.as<const T>(),
        args.rstd.as<const float>(), args.gradX.as<T>(), args.gradGate.as<T>() + args.firstColumn,
        args.partial.as<float>()};
    LaunchShape shape;
    shape.grid = dim3(blocksFor(g.in.rows, kNormRowBlock));
    shape.block = dim3(kGatedThreads);
    const bool packed = gatedFitsPacks(args, args.gradOut, args.gradX, args.gradGate);
    const auto kernel = packed ? listed<gatedNormBackwardKernel<T, kGatedPack>>()
                               : listed<gatedNormBackwardKernel<T, 1>>();
    return launchKernel("gatedNormBackward", kernel, shape, stream, g);
}

} // namespace

Status launchGatedNorm(const GatedNormArgs& args, cudaStream_t stream)
{
    if (args.x.count() == 0)
        return {};
    return args.x.dtype == DType::BF16 ? gatedForward<Bf16>(args, stream)
                                       : gatedForward<float>(args, stream);
}

Status launchGatedNormBackward(const GatedNormBackwardArgs& args, cudaStream_t stream)
{
    MR_TRY(args.x.dtype == DType::BF16 ? gatedBackward<Bf16>(args, stream)
                                       : gatedBackward<float>(args, stream));
    return joinNormPartials(args.partial, args.gradWeight, args.accumulate, stream);
}

} // namespace mr::gpu
