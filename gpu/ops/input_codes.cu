// encodeInputs and decodeInputs: 3 bytes and a scale for every 128 columns move an element of BF16,
// which is bound by memory bandwidth, expected. Half a warp takes a group (F32: a warp), so the
// largest of a group is found in registers, and each thread loads and stores one pack.
//
// Bits equal those of the CPU device: the formula of core/device/input_codes.h has no sums.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kCodeThreads = 256;

// x or out: (rows, cols); codes: (rows, cols); scales: (groups), all rows
template <typename T, typename Code, typename Scale>
struct CodedRows {
    T* values;
    Code* codes;
    Scale* scales;
    std::int64_t cols;
    unsigned groups; // of all rows; 2^32 of them would be 512 GiB of codes
    unsigned groupsOfARow;
};

// A thread's elements of one group: kRounds packs, kLanes apart.
template <int kPack>
struct GroupLane {
    static constexpr int kLanes = kCodedColumns / kPack < kWarp ? kCodedColumns / kPack : kWarp;
    static constexpr int kRounds = kCodedColumns / (kPack * kLanes);
    static constexpr int kGroups = kCodeThreads / kLanes; // of a block

    unsigned group;
    std::int64_t column; // in the row
    std::int64_t first;  // the element there
    std::int64_t left;   // elements of the row from there on; 0: there is no such group

    template <typename Rows>
    __device__ explicit GroupLane(const Rows& rows)
        : group(blockIdx.x * kGroups + threadIdx.x / kLanes)
    {
        const unsigned row = group / rows.groupsOfARow;
        column = std::int64_t{group - row * rows.groupsOfARow} * kCodedColumns +
                 threadIdx.x % kLanes * kPack;
        first = row * rows.cols + column;
        left = group < rows.groups ? rows.cols - column : 0;
    }

    __device__ bool has(int round) const { return round * kLanes * kPack < left; }
    __device__ std::int64_t at(int round) const { return first + round * kLanes * kPack; }
    __device__ bool isFirst() const { return threadIdx.x % kLanes == 0; }
};

// The largest of a group's bits, in all its lanes.
template <int kLanes>
__device__ unsigned groupMax(unsigned bits)
{
#pragma unroll
    for (int apart = kLanes / 2; apart > 0; apart /= 2)
        bits = max(bits, __shfl_xor_sync(kAllLanes, bits, apart));
    return bits;
}

// inputScale() of core/device/input_codes.h.
__device__ inline InputScale scaleOf(unsigned largest)
{
    if (largest >= 0x7F800000U)
        return {0.0F, __uint_as_float(0x7FC00000U)};
    if (largest < 0x03000000U)
        return {};
    const float a = __uint_as_float(largest);
    return {__fdiv_rn(kLargestInputCode, a), __fdiv_rn(a, kLargestInputCode)};
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kCodeThreads)
    encodeInputsKernel(CodedRows<const T, std::int8_t, float> rows)
{
    using Lane = GroupLane<kPack>;
    const Lane lane(rows);
    Pack<T, kPack> held[Lane::kRounds] = {};
    unsigned largest = 0;
#pragma unroll
    for (int round = 0; round < Lane::kRounds; ++round) {
        if (lane.has(round))
            held[round] = loadPack<kPack>(rows.values + lane.at(round));
        for (int k = 0; k < kPack; ++k)
            largest = max(largest, __float_as_uint(toFloat(held[round].at[k])) & 0x7fffffffU);
    }
    const InputScale scale = scaleOf(groupMax<Lane::kLanes>(largest));
    if (lane.isFirst() && lane.left > 0)
        rows.scales[lane.group] = scale.scale;
    const bool isCoded = scale.factor > 0.0F;
#pragma unroll
    for (int round = 0; round < Lane::kRounds; ++round) {
        Pack<std::int8_t, kPack> codes;
        for (int k = 0; k < kPack; ++k) {
            const int code = __float2int_rn(toFloat(held[round].at[k]) * scale.factor);
            codes.at[k] = static_cast<std::int8_t>(isCoded ? code : 0);
        }
        if (lane.has(round))
            storePack(rows.codes + lane.at(round), codes);
    }
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kCodeThreads)
    decodeInputsKernel(CodedRows<T, const std::int8_t, const float> rows)
{
    using Lane = GroupLane<kPack>;
    const Lane lane(rows);
    if (lane.left <= 0)
        return;
    const float scale = rows.scales[lane.group];
#pragma unroll
    for (int round = 0; round < Lane::kRounds; ++round) {
        if (!lane.has(round))
            return;
        const auto codes = loadPack<kPack>(rows.codes + lane.at(round));
        float values[kPack];
        for (int k = 0; k < kPack; ++k)
            values[k] = static_cast<float>(codes.at[k]) * scale;
        storePack(rows.values + lane.at(round), roundPack<T>(values));
    }
}

template <typename Rows>
Rows rowsOf(const TensorView& values, const TensorView& codes, const TensorView& scales)
{
    const std::int64_t perRow = codedGroups(values.dims[1]);
    return {values.as<std::remove_pointer_t<decltype(Rows::values)>>(),
        codes.as<std::remove_pointer_t<decltype(Rows::codes)>>(),
        scales.as<std::remove_pointer_t<decltype(Rows::scales)>>(), values.dims[1],
        static_cast<unsigned>(values.dims[0] * perRow), static_cast<unsigned>(perRow)};
}

template <int kPack>
LaunchShape codeShape(const TensorView& scales)
{
    return {dim3(blocksFor(scales.count(), GroupLane<kPack>::kGroups)), dim3(kCodeThreads)};
}

// Calls fn with the elements of a pack, as a constant.
template <typename T, typename F>
Status withPack(const TensorView& values, const TensorView& codes, F fn)
{
    constexpr int kPack = kPackOf<T>;
    const bool packed = values.dims[1] % kPack == 0 && fitsPacks(kPack, values, codes);
    return packed ? fn(std::integral_constant<int, kPack>()) : fn(std::integral_constant<int, 1>());
}

template <typename T>
Status encodeAs(const EncodeInputsArgs& args, cudaStream_t stream)
{
    return withPack<T>(args.x, args.codes, [&](auto pack) {
        constexpr int kPack = decltype(pack)::value;
        return launchKernel("encodeInputs", listed<encodeInputsKernel<T, kPack>>(),
            codeShape<kPack>(args.scales), stream,
            rowsOf<CodedRows<const T, std::int8_t, float>>(args.x, args.codes, args.scales));
    });
}

template <typename T>
Status decodeAs(const DecodeInputsArgs& args, cudaStream_t stream)
{
    return withPack<T>(args.out, args.codes, [&](auto pack) {
        constexpr int kPack = decltype(pack)::value;
        return launchKernel("decodeInputs", listed<decodeInputsKernel<T, kPack>>(),
            codeShape<kPack>(args.scales), stream,
            rowsOf<CodedRows<T, const std::int8_t, const float>>(
                args.out, args.codes, args.scales));
    });
}

} // namespace

Status launchEncodeInputs(const EncodeInputsArgs& args, cudaStream_t stream)
{
    return args.x.dtype == DType::BF16 ? encodeAs<Bf16>(args, stream)
                                       : encodeAs<float>(args, stream);
}

Status launchDecodeInputs(const DecodeInputsArgs& args, cudaStream_t stream)
{
    return args.out.dtype == DType::BF16 ? decodeAs<Bf16>(args, stream)
                                         : decodeAs<float>(args, stream);
}

} // namespace mr::gpu
