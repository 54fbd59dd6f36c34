#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace mr::cpu {

namespace {

// Rounded to a whole number: adding 1.5 * 2^23 leaves no fraction.
std::int8_t codeOf(float x)
{
    constexpr float kRounder = 12582912.0F;
    return static_cast<std::int8_t>(std::bit_cast<std::uint32_t>(x + kRounder));
}

template <typename T>
float encodeGroup(const T* x, std::int8_t* codes, std::int64_t count)
{
    std::uint32_t largest = 0;
    for (std::int64_t i = 0; i < count; ++i)
        largest = std::max(largest, std::bit_cast<std::uint32_t>(toFloat(x[i])) & 0x7FFFFFFFU);
    const InputScale scale = inputScale(largest);
    if (scale.factor == 0.0F)
        std::fill_n(codes, count, std::int8_t{0});
    else
        for (std::int64_t i = 0; i < count; ++i)
            codes[i] = codeOf(toFloat(x[i]) * scale.factor);
    return scale.scale;
}

template <typename T>
void decodeGroup(const std::int8_t* codes, float scale, T* out, std::int64_t count)
{
    for (std::int64_t i = 0; i < count; ++i)
        out[i] = fromFloat<T>(static_cast<float>(codes[i]) * scale);
}

// Calls fn(first element, count, group) for every group of 128 columns.
template <typename F>
void forGroups(const TensorView& codes, ThreadPool& pool, F fn)
{
    const std::int64_t cols = codes.dims[1];
    const std::int64_t groups = codedGroups(cols);
    forBlocks(pool, codes.dims[0] * groups, kElementBlock / kCodedColumns,
        [=](std::int64_t group, std::int64_t end) {
            for (; group < end; ++group) {
                const std::int64_t column = group % groups * kCodedColumns;
                fn(group / groups * cols + column, std::min(kCodedColumns, cols - column), group);
            }
        });
}

} // namespace

void encodeInputs(const EncodeInputsArgs& args, ThreadPool& pool)
{
    auto* codes = args.codes.as<std::int8_t>();
    auto* scales = args.scales.as<float>();
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const T* x = args.x.as<const T>();
        forGroups(
            args.codes, pool, [=](std::int64_t first, std::int64_t count, std::int64_t group) {
                scales[group] = encodeGroup(x + first, codes + first, count);
            });
    });
}

void decodeInputs(const DecodeInputsArgs& args, ThreadPool& pool)
{
    const auto* codes = args.codes.as<const std::int8_t>();
    const auto* scales = args.scales.as<const float>();
    withType(args.out.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        T* out = args.out.as<T>();
        forGroups(
            args.codes, pool, [=](std::int64_t first, std::int64_t count, std::int64_t group) {
                decodeGroup(codes + first, scales[group], out + first, count);
            });
    });
}

} // namespace mr::cpu
