// QK-norm, backward: gradients of normed and rotated heads to those of projected ones, in place,
// and the weights' gradients.
//
// A block takes kNormRowBlock rows, because that is what the weight's gradient is summed over: a
// thread per column adds the rows of its block in order, then joinNormPartials() adds the blocks in
// order. So the weights' gradients have the bits of the CPU device. Memory is read and written
// once.

#include "gpu/ops/head_rows.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

constexpr auto kBlockRows = static_cast<int>(kNormRowBlock);

// partial (blocks of queries, then of keys; headDim).
template <typename T>
struct HeadGradients {
    HeadRows<T> rows; // packed: the gradient
    float* partial;
};

// sum + grad times the value that the weight met.
template <typename T>
__device__ float addWeightTerm(float sum, T grad, T x, float rstd, bool onePlus)
{
    const float normed = toFloat(x) * rstd;
    const float met = onePlus ? normed : toFloat(fromFloat<T>(normed));
    return __fmaf_rn(toFloat(grad), met, sum);
}

template <typename T, int kPack>
__device__ Pack<T, kPack> gradientPack(const Pack<T, kPack>& grad, const Pack<T, kPack>& weight,
    const Pack<T, kPack>& x, float rstd, float mean, bool onePlus)
{
    float out[kPack];
    for (int i = 0; i < kPack; ++i)
        out[i] = rstd * innerGradient(grad.at[i], weight.at[i], x.at[i], rstd, mean, onePlus);
    return roundPack<T>(out);
}

template <typename T, int kPack>
struct HeldHead {
    Pack<T, kPack> grad, x;
    float rstd = 0.0F;
};

// Rows of a block that its threads hold at once, a pack a lane; the columns' threads read all.
template <typename T, int kPack>
struct StagedHeads {
    Pack<T, kPack> grad[kHeadThreads]; // rotated back
    Pack<T, kPack> x[kHeadThreads];
    float rstd[kHeadThreads];
};

// The gradient of one pack, after its row has met in staged.grad. All lanes of a warp.
template <typename T, int kPack>
__device__ void turnBack(const HeadRows<T>& a, const HeadRow<T>& row, bool isOne,
    const HeldHead<T, kPack>& held, StagedHeads<T, kPack>& staged, const Pack<T, kPack>& weight)
{
    const auto thread = static_cast<int>(threadIdx.x);
    const int pack = thread % a.lanes;
    if (isOne)
        staged.grad[thread] = held.grad;
    __syncwarp();
    Pack<T, kPack> grad;
    float triples = 0.0F;
    if (isOne) {
        grad = rotatedPack(a, row, staged.grad + (thread - pack), pack, -1.0F);
        triples = addTriples(grad, weight, held.x, triples, a.onePlus);
    }
    const float mean = meanOfTriples(rowSum(triples, a.lanes), held.rstd, a.headDim);
    __syncwarp(); // partners have read the pack that is overwritten
    if (!isOne)
        return;
    staged.grad[thread] = grad;
    staged.x[thread] = held.x;
    if (pack == 0)
        staged.rstd[thread / a.lanes] = held.rstd;
    storePack(
        row.packed + pack * kPack, gradientPack(grad, weight, held.x, held.rstd, mean, a.onePlus));
}

// sum + the terms of one column of the first `rows` staged rows.
template <typename T, int kPack>
__device__ float addStagedRows(
    const HeadRows<T>& a, const StagedHeads<T, kPack>& staged, int rows, float sum)
{
    const int pack = static_cast<int>(threadIdx.x) / kPack;
    const int at = static_cast<int>(threadIdx.x) % kPack;
    for (int r = 0; r < rows; ++r) {
        const int place = r * a.lanes + pack;
        sum = addWeightTerm(
            sum, staged.grad[place].at[at], staged.x[place].at[at], staged.rstd[r], a.onePlus);
    }
    return sum;
}

// A pack a lane.
template <typename T, int kPack>
__global__ void __launch_bounds__(kHeadThreads) headNormRopeBackwardKernel(HeadGradients<T> g)
{
    __shared__ StagedHeads<T, kPack> staged;
    const HeadRows<T>& a = g.rows;
    const auto thread = static_cast<int>(threadIdx.x);
    auto block = static_cast<int>(blockIdx.x);
    const HeadSide<T>& side = sideOf(a, block);
    const int pack = thread % a.lanes;
    const int atOnce = min(kHeadThreads / a.lanes, kBlockRows);
    const int begin = block * kBlockRows;
    const int rows = min(side.rows - begin, kBlockRows);
    const bool hasPack = pack < a.headDim / kPack && thread / a.lanes < atOnce;
    Pack<T, kPack> weight;
    if (hasPack)
        weight = loadPack<kPack>(side.weight + pack * kPack);
    float sum = 0.0F;
    for (int first = 0; first < rows; first += atOnce) {
        const int index = first + thread / a.lanes;
        const bool isOne = hasPack && index < rows;
        const HeadRow<T> row = headRow(a, side, begin + min(index, rows - 1));
        HeldHead<T, kPack> held;
        if (isOne)
            held = {loadPack<kPack>(row.packed + pack * kPack),
                loadPack<kPack>(row.projected + pack * kPack), *row.rstd};
        turnBack(a, row, isOne, held, staged, weight);
        __syncthreads();
        if (thread < a.headDim)
            sum = addStagedRows(a, staged, min(atOnce, rows - first), sum);
        __syncthreads(); // before the next rows are staged
    }
    if (thread < a.headDim)
        g.partial[std::int64_t{blockIdx.x} * a.headDim + thread] = sum;
}

// A warp's row: its gradient was rotated back in global memory.
template <typename T, int kPack>
__device__ void walkGradient(
    const HeadRows<T>& a, const HeadSide<T>& side, int index, unsigned normThreads)
{
    const HeadRow<T> row = headRow(a, side, index);
    const int packs = a.headDim / kPack;
    const float rstd = *row.rstd;
    const float triples = walkedSum(packs, normThreads, [&](int pack, float sum) {
        const int at = pack * kPack;
        return addTriples(loadPack<kPack>(row.packed + at), loadPack<kPack>(side.weight + at),
            loadPack<kPack>(row.projected + at), sum, a.onePlus);
    });
    const float mean = meanOfTriples(triples, rstd, a.headDim);
    for (int pack = static_cast<int>(threadIdx.x) % kWarp; pack < packs; pack += kWarp) {
        const int at = pack * kPack;
        storePack(row.packed + at,
            gradientPack(loadPack<kPack>(row.packed + at), loadPack<kPack>(side.weight + at),
                loadPack<kPack>(row.projected + at), rstd, mean, a.onePlus));
    }
}

// Column `column` of rows [begin, end), of gradients that were rotated back.
template <typename T>
__device__ float walkedColumn(
    const HeadRows<T>& a, const HeadSide<T>& side, int begin, int end, int column)
{
    float sum = 0.0F;
#pragma unroll 1 // several rows at once take more registers than a thread has
    for (int index = begin; index < end; ++index) {
        const HeadRow<T> row = headRow(a, side, index);
        sum = addWeightTerm(sum, row.packed[column], row.projected[column], *row.rstd, a.onePlus);
    }
    return sum;
}

// A warp a row.
template <typename T, int kPack>
__global__ void __launch_bounds__(kHeadThreads)
    headNormRopeBackwardWalkKernel(HeadGradients<T> g, unsigned normThreads)
{
    const HeadRows<T>& a = g.rows;
    const auto thread = static_cast<int>(threadIdx.x);
    auto block = static_cast<int>(blockIdx.x);
    const HeadSide<T>& side = sideOf(a, block);
    const int begin = block * kBlockRows;
    const int end = min(side.rows, begin + kBlockRows);
    for (int row = begin + thread / kWarp; row < end; row += kHeadThreads / kWarp)
        rotateWalked(a, headRow(a, side, row), -1.0F);
    __syncthreads();
    for (int column = thread; column < a.headDim; column += kHeadThreads)
        g.partial[std::int64_t{blockIdx.x} * a.headDim + column] =
            walkedColumn(a, side, begin, end, column);
    __syncthreads(); // the columns have read what is overwritten
    for (int row = begin + thread / kWarp; row < end; row += kHeadThreads / kWarp)
        walkGradient<T, kPack>(a, side, row, normThreads);
}

template <typename T>
Status launchBackwardRows(const HeadNormRopeBackwardArgs& args, cudaStream_t stream)
{
    constexpr int kPack = kPackOf<T>;
    const HeadDeal deal = dealHeads<T>(args, args.gradQkv);
    const HeadGradients<T> gradients{
        headRowsOf<T>(args, args.gradQkv, deal, kBlockRows), args.partial.as<float>()};
    const LaunchShape shape = headShape(gradients.rows);
    if (deal.heldByLanes)
        return launchKernel("headNormRopeBackward", listed<headNormRopeBackwardKernel<T, kPack>>(),
            shape, stream, gradients);
    const int packs = deal.packed ? args.headDim / kPack : args.headDim;
    const auto kernel = deal.packed ? listed<headNormRopeBackwardWalkKernel<T, kPack>>()
                                    : listed<headNormRopeBackwardWalkKernel<T, 1>>();
    return launchKernel(
        "headNormRopeBackward", kernel, shape, stream, gradients, normThreads(packs, kNormHeld));
}

} // namespace

Status launchHeadNormRopeBackward(const HeadNormRopeBackwardArgs& args, cudaStream_t stream)
{
    MR_TRY(args.gradQkv.dtype == DType::BF16 ? launchBackwardRows<Bf16>(args, stream)
                                             : launchBackwardRows<float>(args, stream));
    const std::int64_t all = args.partial.dims[0];
    const std::int64_t ofQueries = headNormPartials(args.gradQkv.dims[0], args.heads, 0);
    MR_TRY(joinNormPartials(
        args.partial.rows(0, ofQueries), args.gradQueryWeight, args.accumulate, stream));
    return joinNormPartials(
        args.partial.rows(ofQueries, all - ofQueries), args.gradKeyWeight, args.accumulate, stream);
}

} // namespace mr::gpu
