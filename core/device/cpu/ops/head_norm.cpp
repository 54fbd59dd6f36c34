#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/norm_rows.h"
#include "core/device/cpu/ops/rotation.h"

#include <algorithm>
#include <type_traits>

namespace mr::cpu {

namespace {

// Heads of q or of k within a packed row: `count` of them from head `first` on.
struct HeadRange {
    const HeadNorm* norm;
    std::int64_t first;
    std::int64_t count;
};

template <NormGain kGain, typename T>
void placeHeads(const HeadNormRopeArgs& args, const HeadRange& range, std::int64_t token) noexcept
{
    const std::int64_t dim = args.headDim;
    const HeadAngles angles = anglesOf(args, token, false);
    for (std::int64_t h = 0; h < range.count; ++h) {
        const std::int64_t row = token * range.count + h;
        T* head = args.qkv.as<T>() + token * args.qkv.dims[1] + (range.first + h) * dim;
        T* projected = range.norm->projected.as<T>() + row * dim;
        std::copy(head, head + dim, projected);
        range.norm->rstd.as<float>()[row] =
            normRow<kGain, T>(projected, range.norm->weight.as<const T>(), head, dim, args.eps);
        rotateHead(head, angles);
    }
}

// One block of rows, each a head, and its partial sums.
template <NormGain kGain, typename T>
void headBackwardBlock(const HeadNormRopeBackwardArgs& args, const HeadRange& range,
    std::int64_t block, float* partial) noexcept
{
    const std::int64_t dim = args.headDim;
    std::fill(partial, partial + dim, 0.0F);
    const std::int64_t rows = args.gradQkv.dims[0] * range.count;
    const std::int64_t end = std::min(rows, (block + 1) * kNormRowBlock);
    for (std::int64_t row = block * kNormRowBlock; row < end; ++row) {
        const std::int64_t token = row / range.count;
        const std::int64_t column = (range.first + row % range.count) * dim;
        T* head = args.gradQkv.as<T>() + token * args.gradQkv.dims[1] + column;
        rotateHead(head, anglesOf(args, token, true));
        normBackwardRow<kGain, T>({head, range.norm->projected.as<const T>() + row * dim,
                                      range.norm->weight.as<const T>(), nullptr, head, dim,
                                      range.norm->rstd.as<const float>()[row]},
            partial);
    }
}

} // namespace

void headNormRope(const HeadNormRopeArgs& args, ThreadPool& pool)
{
    const HeadRange ranges[] = {
        {&args.queries, args.firstHead, args.heads}, {&args.keys, args.heads, args.kvHeads}};
    withType(args.qkv.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        withGain(args.gain, [&](auto gain) {
            forBlocks(pool, args.qkv.dims[0], rowsPerItem(args.qkv.dims[1]),
                [&](std::int64_t token, std::int64_t end) {
                    for (; token < end; ++token)
                        for (const HeadRange& range : ranges)
                            placeHeads<gain(), T>(args, range, token);
                });
        });
    });
}

void headNormRopeBackward(const HeadNormRopeBackwardArgs& args, ThreadPool& pool)
{
    const HeadRange queries{&args.queries, args.firstHead, args.heads};
    const HeadRange keys{&args.keys, args.heads, args.kvHeads};
    const std::int64_t all = args.partial.dims[0];
    const std::int64_t ofQueries = headNormPartials(args.gradQkv.dims[0], args.heads, 0);
    withType(args.gradQkv.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        withGain(args.gain, [&](auto gain) {
            pool.parallelFor(all, [&](std::int64_t block) {
                const bool isQuery = block < ofQueries;
                headBackwardBlock<gain(), T>(args, isQuery ? queries : keys,
                    isQuery ? block : block - ofQueries,
                    args.partial.as<float>() + block * args.headDim);
            });
        });
    });
    joinNormPartials(
        args.partial.rows(0, ofQueries), args.gradQueryWeight, args.accumulate, 0, args.headDim);
    joinNormPartials(args.partial.rows(ofQueries, all - ofQueries), args.gradKeyWeight,
        args.accumulate, 0, args.headDim);
}

} // namespace mr::cpu
