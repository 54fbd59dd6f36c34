// QK-norm: the heads of q and k normed and rotated in place, in one pass over the packed rows.
//
// Memory is read once and written twice, as projected and as attention reads it.

#include "gpu/ops/head_rows.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

// A pack a lane.
template <typename T, int kPack>
__global__ void __launch_bounds__(kHeadThreads) headNormRopeKernel(HeadRows<T> a, float eps)
{
    __shared__ Pack<T, kPack> staged[kHeadThreads];
    const auto thread = static_cast<int>(threadIdx.x);
    auto block = static_cast<int>(blockIdx.x);
    const HeadSide<T>& side = sideOf(a, block);
    const int index = block * (kHeadThreads / a.lanes) + thread / a.lanes;
    const int pack = thread % a.lanes;
    const bool isOne = index < side.rows && pack < a.headDim / kPack;
    const HeadRow<T> row = headRow(a, side, min(index, side.rows - 1));
    Pack<T, kPack> x;
    Pack<T, kPack> weight;
    float squares = 0.0F;
    if (isOne) {
        x = loadPack<kPack>(row.packed + pack * kPack);
        weight = loadPack<kPack>(side.weight + pack * kPack);
        squares = addSquares(x, squares);
    }
    const float rstd = rstdOf(rowSum(squares, a.lanes), a.headDim, eps);
    if (isOne)
        staged[thread] = normPack(x, weight, rstd, a.onePlus);
    __syncwarp();
    if (!isOne)
        return;
    if (pack == 0)
        *row.rstd = rstd;
    storePack(row.projected + pack * kPack, x);
    storePack(row.packed + pack * kPack, rotatedPack(a, row, staged + (thread - pack), pack, 1.0F));
}

// A warp a row.
template <typename T, int kPack>
__global__ void __launch_bounds__(kHeadThreads)
    headNormRopeWalkKernel(HeadRows<T> a, float eps, unsigned normThreads)
{
    const auto thread = static_cast<int>(threadIdx.x);
    auto block = static_cast<int>(blockIdx.x);
    const HeadSide<T>& side = sideOf(a, block);
    const int index = block * (kHeadThreads / kWarp) + thread / kWarp;
    if (index >= side.rows) // a whole warp
        return;
    const HeadRow<T> row = headRow(a, side, index);
    const int packs = a.headDim / kPack;
    const float squares = walkedSum(packs, normThreads, [&](int pack, float sum) {
        return addSquares(loadPack<kPack>(row.packed + pack * kPack), sum);
    });
    const float rstd = rstdOf(squares, a.headDim, eps);
    if (thread % kWarp == 0)
        *row.rstd = rstd;
    for (int pack = thread % kWarp; pack < packs; pack += kWarp) {
        const int at = pack * kPack;
        const auto x = loadPack<kPack>(row.packed + at);
        storePack(row.projected + at, x);
        storePack(row.packed + at, normPack(x, loadPack<kPack>(side.weight + at), rstd, a.onePlus));
    }
    __syncwarp(); // a lane rotates elements that others stored
    rotateWalked(a, row, 1.0F);
}

template <typename T>
Status launchForward(const HeadNormRopeArgs& args, cudaStream_t stream)
{
    constexpr int kPack = kPackOf<T>;
    const HeadDeal deal = dealHeads<T>(args, args.qkv);
    const HeadRows<T> rows = headRowsOf<T>(args, args.qkv, deal, kHeadThreads / deal.lanes);
    const LaunchShape shape = headShape(rows);
    if (deal.heldByLanes)
        return launchKernel(
            "headNormRope", listed<headNormRopeKernel<T, kPack>>(), shape, stream, rows, args.eps);
    const int packs = deal.packed ? args.headDim / kPack : args.headDim;
    const auto kernel = deal.packed ? listed<headNormRopeWalkKernel<T, kPack>>()
                                    : listed<headNormRopeWalkKernel<T, 1>>();
    return launchKernel(
        "headNormRope", kernel, shape, stream, rows, args.eps, normThreads(packs, kNormHeld));
}

} // namespace

Status launchHeadNormRope(const HeadNormRopeArgs& args, cudaStream_t stream)
{
    if (args.qkv.count() == 0)
        return {};
    return args.qkv.dtype == DType::BF16 ? launchForward<Bf16>(args, stream)
                                         : launchForward<float>(args, stream);
}

} // namespace mr::gpu
