// Columns of rows, copied or added: copyColumns.
//
// A block covers kRowBlockThreads packs' worth of rows and columns (rowShape()).

#include "core/device/column_ops.h"
#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

#include <type_traits>

namespace mr::gpu {
namespace {

constexpr int kCopyItems = 2; // packs of a thread

struct Columns {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t fromStride;
    std::int64_t toStride;
};

// from, to: the first element that is copied.
template <typename From, typename To, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads)
    copyColumnsKernel(Columns a, const From* from, To* to, bool accumulate)
{
    const std::int64_t row = rowOfThread();
    if (row >= a.rows)
        return;
#pragma unroll
    for (int u = 0; u < kCopyItems; ++u) {
        const std::int64_t c = itemOfThread(kCopyItems, u) * kPack;
        if (c >= a.columns)
            continue;
        const auto read = loadPack<kPack>(from + row * a.fromStride + c);
        To* place = to + row * a.toStride + c;
        if constexpr (std::is_same_v<From, To>) {
            if (!accumulate) {
                storePack(place, read);
                continue;
            }
        }
        float sum[kPack];
        for (int k = 0; k < kPack; ++k)
            sum[k] = toFloat(read.at[k]);
        if (accumulate) {
            const auto there = loadPack<kPack>(place);
            for (int k = 0; k < kPack; ++k)
                sum[k] = toFloat(there.at[k]) + sum[k];
        }
        storePack(place, roundPack<To>(sum));
    }
}

template <typename From, typename To>
Status copy(const CopyColumnsArgs& args, cudaStream_t stream)
{
    constexpr int kPack = std::min(kPackOf<From>, kPackOf<To>);
    const Columns a{args.from.dims[0], args.columns, args.from.dims[1], args.to.dims[1]};
    const bool packed =
        (args.columns | args.fromColumn | args.toColumn | a.fromStride | a.toStride) % kPack == 0 &&
        fitsPacks(kPack, args.from, args.to);
    const auto kernel = packed ? listed<copyColumnsKernel<From, To, kPack>>()
                               : listed<copyColumnsKernel<From, To, 1>>();
    return launchKernel("copyColumns", kernel,
        rowShape(a.rows, a.columns / (packed ? kPack : 1), kCopyItems), stream, a,
        args.from.as<const From>() + args.fromColumn, args.to.as<To>() + args.toColumn,
        args.accumulate);
}

template <typename From>
Status copyFrom(const CopyColumnsArgs& args, cudaStream_t stream)
{
    return args.to.dtype == DType::BF16 ? copy<From, Bf16>(args, stream)
                                        : copy<From, float>(args, stream);
}

} // namespace

Status launchCopyColumns(const CopyColumnsArgs& args, cudaStream_t stream)
{
    if (args.from.dims[0] == 0 || args.columns == 0)
        return {};
    return args.from.dtype == DType::BF16 ? copyFrom<Bf16>(args, stream)
                                          : copyFrom<float>(args, stream);
}

} // namespace mr::gpu
