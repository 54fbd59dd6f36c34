// Queries that come with gates: splitQueries, gateHeads and its backward pass.
//
// Elementwise; a block covers kRowBlockThreads packs' worth of rows and columns (rowShape()).

#include "core/device/recurrent_ops.h"
#include "gpu/ops/exact_functions.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kGateItems = 2; // packs of a thread

// joined (rows, 2 queries + others): q and gate of each head in turn, then the others.
struct JoinedRows {
    std::int64_t rows;
    std::int64_t queries; // heads dim
    std::int64_t packed;  // queries + others
    int dim;

    __device__ std::int64_t joined() const { return packed + queries; }
    __device__ std::int64_t gateOf(std::int64_t column) const
    {
        return (2 * (column / dim) + 1) * dim + column % dim;
    }
    __device__ std::int64_t columnOf(std::int64_t column) const
    {
        return column < queries ? gateOf(column) - dim : column + queries;
    }
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads)
    splitQueriesKernel(JoinedRows a, T* joined, T* packed, bool back)
{
    const std::int64_t row = rowOfThread();
    if (row >= a.rows)
        return;
#pragma unroll
    for (int u = 0; u < kGateItems; ++u) {
        const std::int64_t c = itemOfThread(kGateItems, u) * kPack;
        if (c >= a.packed)
            continue;
        T* one = joined + row * a.joined() + a.columnOf(c);
        T* other = packed + row * a.packed + c;
        storePack(back ? one : other, loadPack<kPack>(back ? other : one));
    }
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads)
    gateHeadsKernel(JoinedRows a, const T* x, const T* joined, T* out)
{
    const std::int64_t row = rowOfThread();
    if (row >= a.rows)
        return;
#pragma unroll
    for (int u = 0; u < kGateItems; ++u) {
        const std::int64_t c = itemOfThread(kGateItems, u) * kPack;
        if (c >= a.queries)
            continue;
        const auto value = loadPack<kPack>(x + row * a.queries + c);
        const auto gate = loadPack<kPack>(joined + row * a.joined() + a.gateOf(c));
        float result[kPack];
        for (int k = 0; k < kPack; ++k)
            result[k] = toFloat(value.at[k]) * exactSigmoid(toFloat(gate.at[k]));
        storePack(out + row * a.queries + c, roundPack<T>(result));
    }
}

// gradX may be gradOut, gradJoined may be joined.
template <typename T>
struct GateGradients {
    const T* gradOut;
    const T* x;
    const T* joined;
    T* gradX;
    T* gradJoined;
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads)
    gateHeadsBackwardKernel(JoinedRows a, GateGradients<T> g)
{
    const std::int64_t row = rowOfThread();
    if (row >= a.rows)
        return;
#pragma unroll
    for (int u = 0; u < kGateItems; ++u) {
        const std::int64_t c = itemOfThread(kGateItems, u) * kPack;
        if (c >= a.queries)
            continue;
        const std::int64_t at = row * a.queries + c;
        const std::int64_t gateAt = row * a.joined() + a.gateOf(c);
        const auto gradOut = loadPack<kPack>(g.gradOut + at);
        const auto x = loadPack<kPack>(g.x + at);
        const auto gate = loadPack<kPack>(g.joined + gateAt);
        float gradX[kPack];
        float gradGate[kPack];
        for (int k = 0; k < kPack; ++k) {
            const float grad = toFloat(gradOut.at[k]);
            const float s = exactSigmoid(toFloat(gate.at[k]));
            gradX[k] = grad * s;
            gradGate[k] = (grad * toFloat(x.at[k])) * (s * (1.0F - s));
        }
        storePack(g.gradX + at, roundPack<T>(gradX));
        storePack(g.gradJoined + gateAt, roundPack<T>(gradGate));
    }
}

template <typename Args>
JoinedRows joinedRows(const Args& args, std::int64_t rows)
{
    const std::int64_t queries = std::int64_t{args.heads} * args.headDim;
    return {rows, queries, queries + 2 * std::int64_t{args.kvHeads} * args.headDim, args.headDim};
}

template <typename T>
Status split(const SplitQueriesArgs& args, cudaStream_t stream)
{
    const JoinedRows a = joinedRows(args, args.joined.dims[0]);
    const bool packed =
        args.headDim % kPackOf<T> == 0 && fitsPacks(kPackOf<T>, args.joined, args.qkv);
    const auto kernel =
        packed ? listed<splitQueriesKernel<T, kPackOf<T>>>() : listed<splitQueriesKernel<T, 1>>();
    return launchKernel("splitQueries", kernel,
        rowShape(a.rows, a.packed / (packed ? kPackOf<T> : 1), kGateItems), stream, a,
        args.joined.as<T>(), args.qkv.as<T>(), args.back);
}

template <typename T>
Status gate(const GateHeadsArgs& args, cudaStream_t stream)
{
    const JoinedRows a = joinedRows(args, args.x.dims[0]);
    const bool packed =
        args.headDim % kPackOf<T> == 0 && fitsPacks(kPackOf<T>, args.x, args.joined, args.out);
    const auto kernel =
        packed ? listed<gateHeadsKernel<T, kPackOf<T>>>() : listed<gateHeadsKernel<T, 1>>();
    return launchKernel("gateHeads", kernel,
        rowShape(a.rows, a.queries / (packed ? kPackOf<T> : 1), kGateItems), stream, a,
        args.x.as<const T>(), args.joined.as<const T>(), args.out.as<T>());
}

template <typename T>
Status gateBackward(const GateHeadsBackwardArgs& args, cudaStream_t stream)
{
    const JoinedRows a = joinedRows(args, args.x.dims[0]);
    const GateGradients<T> g{args.gradOut.as<const T>(), args.x.as<const T>(),
        args.joined.as<const T>(), args.gradX.as<T>(), args.gradJoined.as<T>()};
    const bool packed =
        args.headDim % kPackOf<T> == 0 &&
        fitsPacks(kPackOf<T>, args.gradOut, args.x, args.joined, args.gradX, args.gradJoined);
    const auto kernel = packed ? listed<gateHeadsBackwardKernel<T, kPackOf<T>>>()
                               : listed<gateHeadsBackwardKernel<T, 1>>();
    return launchKernel("gateHeadsBackward", kernel,
        rowShape(a.rows, a.queries / (packed ? kPackOf<T> : 1), kGateItems), stream, a, g);
}

} // namespace

Status launchSplitQueries(const SplitQueriesArgs& args, cudaStream_t stream)
{
    if (args.joined.count() == 0)
        return {};
    return args.joined.dtype == DType::BF16 ? split<Bf16>(args, stream)
                                            : split<float>(args, stream);
}

Status launchGateHeads(const GateHeadsArgs& args, cudaStream_t stream)
{
    if (args.x.count() == 0)
        return {};
    return args.x.dtype == DType::BF16 ? gate<Bf16>(args, stream) : gate<float>(args, stream);
}

Status launchGateHeadsBackward(const GateHeadsBackwardArgs& args, cudaStream_t stream)
{
    if (args.x.count() == 0)
        return {};
    return args.x.dtype == DType::BF16 ? gateBackward<Bf16>(args, stream)
                                       : gateBackward<float>(args, stream);
}

} // namespace mr::gpu
