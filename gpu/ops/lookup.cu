// embed and its backward pass.
//
// embed copies rows: four packs a thread, all in flight.
//
// embedBackward: one block a run of equal ids (a run starts where `order` changes the id), columns
// across its threads, so no two blocks add to the same row and the order is that of the tokens.
// Every warp finds the run for itself, 32 tokens at a time, one a lane, and hands the tokens round
// by shuffles: a run of thousands (padding) then waits for two reads every 32 tokens, not for two
// a token; eight rows are in flight. Blocks in the middle of a run end at once.
// Rows without a token are cleared before, with all others: finding them would take a search per
// vocabulary row, writing the few rows with a token twice costs less.
//
// Bits equal those of the CPU device.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

#include <cstddef>

namespace mr::gpu {
namespace {

constexpr int kCopies = 4; // packs of a thread

// `scale` rounded to T, times x. A scale of 1 leaves all bits as they are, those of a NaN, too.
template <typename T, int kPack>
__device__ Pack<T, kPack> scaled(const Pack<T, kPack>& x, float scale)
{
    if (scale == 1.0F)
        return x;
    float out[kPack];
    for (int i = 0; i < kPack; ++i)
        out[i] = toFloat(x.at[i]) * toFloat(fromFloat<T>(scale));
    return roundPack<T>(out);
}

template <typename T, int kPack>
__device__ Pack<T, kPack> notANumber()
{
    float out[kPack];
    for (int i = 0; i < kPack; ++i)
        out[i] = nanf("");
    return roundPack<T>(out);
}

// ids (tokens), table (rows, cols), out (tokens, cols). rowShape(tokens, cols / kPack, kCopies).
// An id without a row gives NaN: the batch is checked on the host, and a kernel that is called
// without that still reads nothing beside the table.
template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads)
    embedKernel(const std::int32_t* __restrict__ ids, const T* __restrict__ table,
        T* __restrict__ out, std::int64_t tokens, std::int64_t rows, std::int64_t cols, float scale)
{
    const std::int64_t token = rowOfThread();
    if (token >= tokens)
        return;
    const std::int64_t id = ids[token];
    const bool isRow = id >= 0 && id < rows;
    const T* from = table + id * cols;
    Pack<T, kPack> held[kCopies];
#pragma unroll
    for (int u = 0; u < kCopies; ++u) {
        const std::int64_t c = itemOfThread(kCopies, u) * kPack;
        if (c < cols && isRow)
            held[u] = loadPack<kPack>(from + c);
    }
#pragma unroll
    for (int u = 0; u < kCopies; ++u) {
        const std::int64_t c = itemOfThread(kCopies, u) * kPack;
        if (c < cols)
            storePack(
                out + token * cols + c, isRow ? scaled(held[u], scale) : notANumber<T, kPack>());
    }
}

constexpr int kSumThreads = 256;
constexpr int kRowsAtOnce = 8;

template <typename T, typename Out>
struct Runs {
    const std::int32_t* ids;   // (tokens)
    const std::int32_t* order; // (tokens)
    const T* gradOut;          // (tokens, cols)
    Out* gradTable;            // (V, cols)
    std::int64_t tokens, rows, cols;
    bool accumulate;
    float scale;
    std::int64_t untrainedRow;
};

// Adds the rows of the tokens that the warp's lanes hold, lane order, as far as `inRun` has bits.
template <int kPack, typename T, typename Out>
__device__ void addTokens(const Runs<T, Out>& a, std::int32_t token, unsigned inRun,
    std::int64_t col, float (&sum)[kPack])
{
    for (int first = 0; first < kWarp && (inRun >> first & 1U) != 0; first += kRowsAtOnce) {
        Pack<T, kPack> held[kRowsAtOnce];
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i) {
            const std::int64_t row = __shfl_sync(kAllLanes, token, first + i);
            if (col < a.cols && (inRun >> (first + i) & 1U) != 0)
                held[i] = loadPack<kPack>(a.gradOut + row * a.cols + col);
        }
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i)
            if (col < a.cols && (inRun >> (first + i) & 1U) != 0)
                for (int k = 0; k < kPack; ++k)
                    sum[k] = sum[k] + toFloat(held[i].at[k]);
    }
}

// Grid.x: positions in `order`; grid.y covers cols by kSumThreads * kPack.
template <typename T, typename Out, int kPack>
__global__ void __launch_bounds__(kSumThreads) embedBackwardKernel(Runs<T, Out> a)
{
    const std::int64_t start = blockIdx.x;
    const std::int32_t id = a.ids[a.order[start]];
    if (id < 0 || id >= a.rows || id == a.untrainedRow ||
        (start > 0 && a.ids[a.order[start - 1]] == id))
        return; // the whole block
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const std::int64_t col = (std::int64_t{blockIdx.y} * kSumThreads + threadIdx.x) * kPack;
    float sum[kPack] = {};
    unsigned inRun = kAllLanes;
    for (std::int64_t first = start; inRun == kAllLanes; first += kWarp) {
        const std::int64_t at = first + lane;
        const std::int32_t token = at < a.tokens ? a.order[at] : -1;
        inRun = __ballot_sync(kAllLanes, token >= 0 && a.ids[max(token, 0)] == id);
        addTokens(a, token, inRun, col, sum);
    }
    if (col >= a.cols)
        return;
    Out* to = a.gradTable + std::int64_t{id} * a.cols + col;
    for (int k = 0; k < kPack; ++k)
        sum[k] = toFloat(fromFloat<T>(a.scale)) * sum[k];
    if (a.accumulate) {
        const auto before = loadPack<kPack>(to);
        for (int k = 0; k < kPack; ++k)
            sum[k] = toFloat(before.at[k]) + sum[k];
    }
    storePack(to, roundPack<Out>(sum));
}

template <typename T, int kPack>
Status embed(const EmbedArgs& args, cudaStream_t stream)
{
    const std::int64_t tokens = args.out.dims[0];
    const std::int64_t cols = args.out.dims[1];
    return launchKernel("embed", listed<embedKernel<T, kPack>>(),
        rowShape(tokens, cols / kPack, kCopies), stream, args.ids.as<const std::int32_t>(),
        args.table.as<const T>(), args.out.as<T>(), tokens, args.table.dims[0], cols, args.scale);
}

template <typename T>
Status embed(const EmbedArgs& args, cudaStream_t stream)
{
    const bool packed =
        args.out.dims[1] % kPackOf<T> == 0 && fitsPacks(kPackOf<T>, args.table, args.out);
    return packed ? embed<T, kPackOf<T>>(args, stream) : embed<T, 1>(args, stream);
}

template <typename T, typename Out>
Status embedBackward(const EmbedBackwardArgs& args, cudaStream_t stream)
{
    const Runs<T, Out> runs{args.ids.as<const std::int32_t>(), args.order.as<const std::int32_t>(),
        args.gradOut.as<const T>(), args.gradTable.as<Out>(), args.gradOut.dims[0],
        args.gradTable.dims[0], args.gradOut.dims[1], args.accumulate, args.scale,
        args.untrainedRow};
    constexpr int kPack = kPackOf<float>;
    const bool packed = runs.cols % kPack == 0 && fitsPacks(kPack, args.gradOut, args.gradTable);
    LaunchShape shape;
    shape.block = dim3(kSumThreads);
    const auto tokens = static_cast<unsigned>(runs.tokens); // they are I32
    shape.grid = dim3(tokens, blocksFor(runs.cols, kSumThreads * (packed ? kPack : 1)));
    const auto kernel = packed ? listed<embedBackwardKernel<T, Out, kPack>>()
                               : listed<embedBackwardKernel<T, Out, 1>>();
    return launchKernel("embedBackward", kernel, shape, stream, runs);
}

} // namespace

Status launchEmbed(const EmbedArgs& args, cudaStream_t stream)
{
    if (args.out.count() == 0)
        return {};
    return args.table.dtype == DType::BF16 ? embed<Bf16>(args, stream) : embed<float>(args, stream);
}

Status launchEmbedBackward(const EmbedBackwardArgs& args, cudaStream_t stream)
{
    if (!args.accumulate)
        MR_TRY(launchFill({args.gradTable, 0.0F}, stream));
    if (args.gradOut.count() == 0)
        return {};
    if (args.gradTable.dtype == DType::BF16)
        return embedBackward<Bf16, Bf16>(args, stream);
    return args.gradOut.dtype == DType::BF16 ? embedBackward<Bf16, float>(args, stream)
                                             : embedBackward<float, float>(args, stream);
}

} // namespace mr::gpu
