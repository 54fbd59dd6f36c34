// RMS norm, backward: gradX by rows, gradWeight by columns.
//
// gradX needs the sum over a row, gradWeight the sum down the rows: two shapes of work on the same
// gradOut and x. One launch holds both. Every kNormRowBlock rows are followed by the blocks that
// sum their columns into args.partial; blocks start in order, so those find the rows in the second
// cache, and memory is read once. The alternative, one block that keeps both sums of 64 rows, would
// leave all but T / 64 multiprocessors idle. A second kernel adds the partial sums in order.
//
// Columns are summed in order of rows and blocks, so gradWeight has the bits of the CPU device.

#include "gpu/ops/launchers.h"
#include "gpu/ops/norm_rows.cuh"

namespace mr::gpu {
namespace {

constexpr int kRowsAtOnce = 4;   // in flight of a column's thread
constexpr int kJoinThreads = 64; // few, so that a row of 4,096 columns fills 64 blocks
constexpr int kPartialsAtOnce = 16;

// gradOut, x, gradResidual, gradX (rows, cols), weight (cols), rstd (rows),
// partial (ceil(rows / kNormRowBlock), cols). gradX may be gradResidual, which may be null.
template <typename T>
struct Tensors {
    const T* gradOut;
    const T* x;
    const T* weight;
    const float* rstd;
    const T* gradResidual;
    T* gradX;
    float* partial;
    std::int64_t rows, cols;
    int columnBlocks; // that sum the columns of kNormRowBlock rows
    bool onePlus;     // NormGain::OnePlusWeight
};

template <typename T, int kPack>
struct Held {
    Pack<T, kPack> grad, x, residual;
};

template <int kPack, typename T>
__device__ Held<T, kPack> loadHeld(const Tensors<T>& a, std::int64_t row, std::int64_t c)
{
    Held<T, kPack> held;
    held.grad = loadPack<kPack>(a.gradOut + row * a.cols + c);
    held.x = loadPack<kPack>(a.x + row * a.cols + c);
    if (a.gradResidual)
        held.residual = loadPack<kPack>(a.gradResidual + row * a.cols + c);
    return held;
}

// sum + the triples of a pack. The weight is read for each pass: all rows share it, so it comes
// from the first cache, and holding it as well would take more registers than a thread has.
template <typename T, int kPack>
__device__ float addHeldTriples(
    const Tensors<T>& a, std::int64_t c, const Held<T, kPack>& held, float sum)
{
    return addTriples(held.grad, loadPack<kPack>(a.weight + c), held.x, sum, a.onePlus);
}

// With n = x rstd: gradX = rstd (g w - n mean(g w n)) + gradResidual.
template <typename T, int kPack>
__device__ void storeGradient(const Tensors<T>& a, std::int64_t row, std::int64_t c,
    const Held<T, kPack>& held, float rstd, float mean)
{
    const auto weight = loadPack<kPack>(a.weight + c);
    float out[kPack];
    for (int i = 0; i < kPack; ++i) {
        const float inner =
            innerGradient(held.grad.at[i], weight.at[i], held.x.at[i], rstd, mean, a.onePlus);
        out[i] =
            a.gradResidual ? __fmaf_rn(rstd, inner, toFloat(held.residual.at[i])) : rstd * inner;
    }
    storePack(a.gradX + row * a.cols + c, roundPack<T>(out));
}

template <typename T>
__device__ float rowMean(const Tensors<T>& a, float triples, float rstd)
{
    __shared__ float warps[kMaxNormThreads / kWarp];
    triples = blockSum(triples, warps, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
    return meanOfTriples(triples, rstd, a.cols);
}

// All threads of a block: gradX of one row, kept in registers.
template <typename T, int kPack>
__device__ void heldRow(const Tensors<T>& a, std::int64_t row)
{
    const auto column = [](int u) {
        return (static_cast<std::int64_t>(u) * blockDim.x + threadIdx.x) * kPack;
    };
    Held<T, kPack> held[kNormHeld];
#pragma unroll
    for (int u = 0; u < kNormHeld; ++u)
        if (column(u) < a.cols)
            held[u] = loadHeld<kPack>(a, row, column(u));
    const float rstd = a.rstd[row];
    float triples = 0.0F;
#pragma unroll
    for (int u = 0; u < kNormHeld; ++u)
        if (column(u) < a.cols)
            triples = addHeldTriples(a, column(u), held[u], triples);
    const float mean = rowMean(a, triples, rstd);
#pragma unroll
    for (int u = 0; u < kNormHeld; ++u)
        if (column(u) < a.cols)
            storeGradient(a, row, column(u), held[u], rstd, mean);
}

// As heldRow(), for a row that is read twice.
template <typename T, int kPack>
__device__ void longRow(const Tensors<T>& a, std::int64_t row)
{
    const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kPack;
    const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * kPack;
    const float rstd = a.rstd[row];
    float triples = 0.0F;
    for (std::int64_t c = first; c < a.cols; c += step)
        triples = addHeldTriples(a, c, loadHeld<kPack>(a, row, c), triples);
    const float mean = rowMean(a, triples, rstd);
    for (std::int64_t c = first; c < a.cols; c += step)
        storeGradient(a, row, c, loadHeld<kPack>(a, row, c), rstd, mean);
}

// Adds kRowsAtOnce rows from `row` on to `sums`, as far as `end`.
template <typename T, int kPack>
__device__ void addColumnTerms(
    const Tensors<T>& a, std::int64_t row, std::int64_t end, std::int64_t col, float (&sums)[kPack])
{
    Pack<T, kPack> grad[kRowsAtOnce];
    Pack<T, kPack> x[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
        if (row + i < end) {
            grad[i] = loadPack<kPack>(a.gradOut + (row + i) * a.cols + col);
            x[i] = loadPack<kPack>(a.x + (row + i) * a.cols + col);
        }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
        if (row + i >= end)
            break;
        float normed[kPack];
        for (int k = 0; k < kPack; ++k)
            normed[k] = toFloat(x[i].at[k]) * a.rstd[row + i];
        if (!a.onePlus)
            roundTo<T>(normed);
        for (int k = 0; k < kPack; ++k)
            sums[k] = __fmaf_rn(toFloat(grad[i].at[k]), normed[k], sums[k]);
    }
}

// partial[rowBlock] at one pack of columns a thread.
template <typename T, int kPack>
__device__ void sumColumns(const Tensors<T>& a, std::int64_t rowBlock, int columnBlock)
{
    const std::int64_t col =
        (static_cast<std::int64_t>(columnBlock) * blockDim.x + threadIdx.x) * kPack;
    if (col >= a.cols)
        return;
    const std::int64_t first = rowBlock * kNormRowBlock;
    const std::int64_t end = min(a.rows, first + kNormRowBlock);
    float sums[kPack] = {};
    for (std::int64_t row = first; row < end; row += kRowsAtOnce)
        addColumnTerms(a, row, end, col, sums);
    for (int k = 0; k < kPack; ++k)
        a.partial[rowBlock * a.cols + col + k] = sums[k];
}

// A turn is kNormRowBlock + columnBlocks blocks of threads: the first take a row each, the others
// columns of those rows. normThreads() threads a block.
template <typename T, int kPack, bool kHeldRows>
__global__ void __launch_bounds__(kMaxNormThreads) rmsNormBackwardKernel(Tensors<T> a)
{
    const unsigned turn =
        static_cast<unsigned>(kNormRowBlock) + static_cast<unsigned>(a.columnBlocks);
    const std::int64_t rowBlock = blockIdx.x / turn;
    const auto index = static_cast<int>(blockIdx.x % turn);
    if (index >= kNormRowBlock) {
        sumColumns<T, kPack>(a, rowBlock, index - static_cast<int>(kNormRowBlock));
        return;
    }
    const std::int64_t row = rowBlock * kNormRowBlock + index;
    if (row >= a.rows)
        return;
    if constexpr (kHeldRows)
        heldRow<T, kPack>(a, row);
    else
        longRow<T, kPack>(a, row);
}

// partial (blocks, cols), gradWeight (cols). A column a thread; grid.x covers cols.
template <typename Out>
__global__ void __launch_bounds__(kJoinThreads)
    joinPartialsKernel(const float* __restrict__ partial, Out* gradWeight, std::int64_t blocks,
        std::int64_t cols, bool accumulate)
{
    const std::int64_t col = std::int64_t{blockIdx.x} * kJoinThreads + threadIdx.x;
    if (col >= cols)
        return;
    float sum = 0.0F;
    for (std::int64_t first = 0; first < blocks; first += kPartialsAtOnce) {
        float held[kPartialsAtOnce];
#pragma unroll
        for (int i = 0; i < kPartialsAtOnce; ++i)
            if (first + i < blocks)
                held[i] = partial[(first + i) * cols + col];
#pragma unroll
        for (int i = 0; i < kPartialsAtOnce; ++i)
            if (first + i < blocks)
                sum = sum + held[i];
    }
    gradWeight[col] = fromFloat<Out>(accumulate ? toFloat(gradWeight[col]) + sum : sum);
}

template <typename T>
Status launchRows(const RmsNormBackwardArgs& args, cudaStream_t stream)
{
    Tensors<T> a{args.gradOut.as<const T>(), args.x.as<const T>(), args.weight.as<const T>(),
        args.rstd.as<const float>(), args.gradResidual.as<const T>(), args.gradX.as<T>(),
        args.partial.as<float>(), args.x.dims[0], args.x.dims[1], 0,
        args.gain == NormGain::OnePlusWeight};
    constexpr int kPack = kPackOf<T>;
    const bool packed = a.cols % kPack == 0 && fitsPacks(kPack, args.gradOut, args.x, args.weight,
                                                   args.gradResidual, args.gradX);
    const std::int64_t packs = packed ? a.cols / kPack : a.cols;
    LaunchShape shape;
    shape.block = dim3(normThreads(packs, kNormHeld));
    a.columnBlocks = static_cast<int>(blocksFor(packs, shape.block.x));
    shape.grid = dim3(static_cast<unsigned>(
        args.partial.dims[0] * (kNormRowBlock + std::int64_t{a.columnBlocks})));
    const auto kernel = !packed                ? listed<rmsNormBackwardKernel<T, 1, false>>()
                        : normRowIsHeld(packs) ? listed<rmsNormBackwardKernel<T, kPack, true>>()
                                               : listed<rmsNormBackwardKernel<T, kPack, false>>();
    return launchKernel("rmsNormBackward", kernel, shape, stream, a);
}

template <typename Out>
Status joinPartials(
    const TensorView& partial, const TensorView& gradWeight, bool accumulate, cudaStream_t stream)
{
    const std::int64_t cols = partial.dims[1];
    LaunchShape shape;
    shape.grid = dim3(blocksFor(cols, kJoinThreads));
    shape.block = dim3(kJoinThreads);
    return launchKernel("join norm partials", listed<joinPartialsKernel<Out>>(), shape, stream,
        partial.as<const float>(), gradWeight.as<Out>(), partial.dims[0], cols, accumulate);
}

} // namespace

Status joinNormPartials(
    const TensorView& partial, const TensorView& gradWeight, bool accumulate, cudaStream_t stream)
{
    if (gradWeight.data == nullptr)
        return {};
    return gradWeight.dtype == DType::BF16
               ? joinPartials<Bf16>(partial, gradWeight, accumulate, stream)
               : joinPartials<float>(partial, gradWeight, accumulate, stream);
}

Status launchRmsNormBackward(const RmsNormBackwardArgs& args, cudaStream_t stream)
{
    if (args.x.dims[1] == 0)
        return {};
    MR_TRY(args.x.dtype == DType::BF16 ? launchRows<Bf16>(args, stream)
                                       : launchRows<float>(args, stream));
    return joinNormPartials(args.partial, args.gradWeight, args.accumulate, stream);
}

} // namespace mr::gpu
