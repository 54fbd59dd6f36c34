// Rotary positions, in place on packed rows.
//
// An item is one pack of the lower half of a head's rotated elements, and its partner in the upper
// half; where neighbours turn, one pack of both. Two items a thread: with the table's packs about
// 96 bytes in flight. Neighbouring threads read the tables once a head, so all reads but the first
// hit the L1 cache. Columns beside the rotated heads are not touched.

#include "gpu/ops/launchers.h"
#include "gpu/ops/rotation.cuh"

namespace mr::gpu {
namespace {

constexpr int kItems = 2; // per thread

template <typename T>
struct Rotation {
    T* x;                          // (rows, cols), from the first head on
    const std::int32_t* positions; // (rows)
    const float* cosTable;         // (maxPosition, half)
    const float* sinTable;         // (maxPosition, half)
    std::int64_t rows, cols;
    int half; // half of a head's rotated elements
    int headDim;
    int heads;
    float sign; // -1 rotates back
};

template <typename T, int kPack>
struct Item {
    Pack<T, kPack> low, high;
    float cosine[kPack];
    float sine[kPack];
};

template <typename T, int kPack>
__device__ void rotate(const Item<T, kPack>& item, const Rotation<T>& a, T* low)
{
    float lower[kPack];
    float upper[kPack];
    for (int i = 0; i < kPack; ++i) {
        const float x = toFloat(item.low.at[i]);
        const float y = toFloat(item.high.at[i]);
        const float s = a.sign * item.sine[i];
        lower[i] = rotated(x, y, item.cosine[i], s, false);
        upper[i] = rotated(y, x, item.cosine[i], s, true);
    }
    storePack(low, roundPack<T>(lower));
    storePack(low + a.half, roundPack<T>(upper));
}

// rowShape(rows, heads * half / kPack, kItems).
template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads) ropeKernel(Rotation<T> a)
{
    const std::int64_t row = rowOfThread();
    if (row >= a.rows)
        return;
    const std::int64_t table = std::int64_t{a.positions[row]} * a.half;
    const int perHead = a.half / kPack;
    const int items = a.heads * perHead; // heads * headDim columns: far below 2^31
    T* lows[kItems];
    Item<T, kPack> held[kItems];
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
        const int item = static_cast<int>(itemOfThread(kItems, u));
        const int head = item / perHead;
        const int at = (item - head * perHead) * kPack;
        lows[u] = a.x + row * a.cols + std::int64_t{head} * a.headDim + at;
        if (item < items) {
            held[u].low = loadPack<kPack>(lows[u]);
            held[u].high = loadPack<kPack>(lows[u] + a.half);
            loadTable(a.cosTable + table + at, held[u].cosine);
            loadTable(a.sinTable + table + at, held[u].sine);
        }
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u)
        if (itemOfThread(kItems, u) < items)
            rotate(held[u], a, lows[u]);
}

// Pairs of neighbours that lie together, and their angles.
template <typename T, int kPairs>
struct Neighbours {
    T at[2 * kPairs];
    float cosine[kPairs];
    float sine[kPairs];
};

template <typename T, int kPairs>
__device__ void loadNeighbours(const T* from, Neighbours<T, kPairs>& to)
{
    if constexpr (kPairs == 1) { // it may start anywhere
        to.at[0] = from[0];
        to.at[1] = from[1];
    } else {
        const auto pack = loadPack<2 * kPairs>(from);
        for (int i = 0; i < 2 * kPairs; ++i)
            to.at[i] = pack.at[i];
    }
}

template <typename T, int kPairs>
__device__ void turnNeighbours(const Neighbours<T, kPairs>& held, float sign, T* to)
{
    float turned[2 * kPairs];
    for (int i = 0; i < kPairs; ++i) {
        const float low = toFloat(held.at[2 * i]);
        const float high = toFloat(held.at[2 * i + 1]);
        const float sine = sign * held.sine[i];
        turned[2 * i] = rotated(low, high, held.cosine[i], sine, false);
        turned[2 * i + 1] = rotated(high, low, held.cosine[i], sine, true);
    }
    const auto pack = roundPack<T>(turned);
    if constexpr (kPairs == 1) {
        to[0] = pack.at[0];
        to[1] = pack.at[1];
    } else {
        storePack(to, pack);
    }
}

// rowShape(rows, heads * half / kPairs, kItems).
template <typename T, int kPairs>
__global__ void __launch_bounds__(kRowBlockThreads) ropeNeighboursKernel(Rotation<T> a)
{
    const std::int64_t row = rowOfThread();
    if (row >= a.rows)
        return;
    const std::int64_t table = std::int64_t{a.positions[row]} * a.half;
    const int perHead = a.half / kPairs;
    const int items = a.heads * perHead;
    T* places[kItems];
    Neighbours<T, kPairs> held[kItems];
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
        const int item = static_cast<int>(itemOfThread(kItems, u));
        const int head = item / perHead;
        const int at = (item - head * perHead) * kPairs;
        places[u] = a.x + row * a.cols + std::int64_t{head} * a.headDim + 2 * at;
        if (item < items) {
            loadNeighbours(places[u], held[u]);
            loadTable(a.cosTable + table + at, held[u].cosine);
            loadTable(a.sinTable + table + at, held[u].sine);
        }
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u)
        if (itemOfThread(kItems, u) < items)
            turnNeighbours(held[u], a.sign, places[u]);
}

template <typename T>
Rotation<T> rotationOf(const RopeArgs& args)
{
    return {args.x.as<T>() + std::int64_t{args.firstHead} * args.headDim,
        args.positions.as<const std::int32_t>(), args.cosTable.as<const float>(),
        args.sinTable.as<const float>(), args.x.dims[0], args.x.dims[1], args.rotaryDim / 2,
        args.headDim, args.heads, args.inverse ? -1.0F : 1.0F};
}

template <typename T>
Status launchNeighbours(const RopeArgs& args, cudaStream_t stream)
{
    const Rotation<T> rotation = rotationOf<T>(args);
    constexpr int kPack = kPackOf<T>;
    constexpr int kPairs = kPack / 2;
    const bool packed = args.rotaryDim % kPack == 0 && args.headDim % kPack == 0 &&
                        rotation.cols % kPack == 0 && fitsPacks(kPack, args.x) &&
                        fitsPacks(kPairs, args.cosTable, args.sinTable);
    const std::int64_t pairs = std::int64_t{args.heads} * rotation.half; // per row
    if (packed)
        return launchKernel("rope", listed<ropeNeighboursKernel<T, kPairs>>(),
            rowShape(rotation.rows, pairs / kPairs, kItems), stream, rotation);
    return launchKernel("rope", listed<ropeNeighboursKernel<T, 1>>(),
        rowShape(rotation.rows, pairs, kItems), stream, rotation);
}

template <typename T>
Status launch(const RopeArgs& args, cudaStream_t stream)
{
    if (args.pairs == RopePairs::Neighbours)
        return launchNeighbours<T>(args, stream);
    const Rotation<T> rotation = rotationOf<T>(args);
    const std::int64_t cols = rotation.cols;
    const int half = rotation.half;
    constexpr int kPack = kPackOf<T>;
    const bool packed = half % kPack == 0 && args.headDim % kPack == 0 && cols % kPack == 0 &&
                        fitsPacks(kPack, args.x) &&
                        fitsPacks(kPackOf<float>, args.cosTable, args.sinTable);
    const std::int64_t pairs = std::int64_t{args.heads} * half; // per row
    if (packed)
        return launchKernel("rope", listed<ropeKernel<T, kPack>>(),
            rowShape(rotation.rows, pairs / kPack, kItems), stream, rotation);
    return launchKernel("rope", listed<ropeKernel<T, 1>>(), rowShape(rotation.rows, pairs, kItems),
        stream, rotation);
}

} // namespace

Status launchRope(const RopeArgs& args, cudaStream_t stream)
{
    if (args.heads == 0 || args.x.count() == 0)
        return {};
    return args.x.dtype == DType::BF16 ? launch<Bf16>(args, stream) : launch<float>(args, stream);
}

} // namespace mr::gpu
