// Rotary positions, in place on packed rows.
//
// An item is one pack of the lower half of a head's rotated elements, and its partner in the upper
// half. Two items a thread: with the table's packs about 96 bytes in flight. Neighbouring threads
// read the tables once a head, so all reads but the first hit the L1 cache. Columns past the
// rotated heads are not touched.

#include "gpu/ops/launchers.h"
#include "gpu/ops/rotation.cuh"

namespace mr::gpu {
namespace {

constexpr int kItems = 2; // per thread

template <typename T>
struct Rotation {
    T* x;                          // (rows, cols)
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

template <typename T>
Status launch(const RopeArgs& args, cudaStream_t stream)
{
    const std::int64_t cols = args.x.dims[1];
    const int half = args.rotaryDim / 2;
    const Rotation<T> rotation{args.x.as<T>(), args.positions.as<const std::int32_t>(),
        args.cosTable.as<const float>(), args.sinTable.as<const float>(), args.x.dims[0], cols,
        half, args.headDim, args.heads, args.inverse ? -1.0F : 1.0F};
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
