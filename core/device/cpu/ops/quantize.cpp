#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"
#include "core/device/fp8.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mr::cpu {

namespace {

// BF16 bits of the largest magnitude, by parts. A NaN is the largest of all.
void findLargest(const QuantizeArgs& args, ThreadPool& pool)
{
    const std::int64_t count = args.x.count();
    const std::int64_t part = (count + kQuantizePartials - 1) / kQuantizePartials;
    const auto* x = args.x.as<const std::uint16_t>();
    auto* partial = args.partial.as<std::int32_t>();
    forBlocks(pool, kQuantizePartials, 8, [=](std::int64_t p, std::int64_t end) {
        for (; p < end; ++p) {
            std::uint16_t largest = 0;
            for (std::int64_t i = p * part; i < std::min(count, (p + 1) * part); ++i)
                largest = std::max(largest, static_cast<std::uint16_t>(x[i] & 0x7FFFU));
            partial[p] = largest;
        }
    });
}

template <typename Code>
void writeCodes(const QuantizeArgs& args, float factor, ThreadPool& pool)
{
    const auto* x = args.x.as<const Bf16>();
    auto* codes = args.codes.as<Code>();
    forBlocks(pool, args.x.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
#pragma GCC ivdep // codes are not x
        for (std::int64_t i = first; i < end; ++i)
            codes[i] = fp8Of<Code>(toFloat(x[i]) * factor);
    });
}

// An item is a few rows of the result: columns of x.
template <typename Code>
void writeTurned(const QuantizeArgs& args, float factor, ThreadPool& pool)
{
    const std::int64_t rows = args.x.dims[0];
    const std::int64_t cols = args.x.dims[1];
    const auto* x = args.x.as<const Bf16>();
    auto* turned = args.turned.as<Code>();
    constexpr std::int64_t kLineCodes = 2 * kCodeBlock;
    forBlocks(pool, cols, kLineCodes, [=](std::int64_t first, std::int64_t end) {
        std::array<Code, kLineCodes> line; // without its scattered stores the loop is vectorised
        for (std::int64_t r = 0; r < rows; ++r) {
            const Bf16* from = x + r * cols + first;
            for (std::int64_t c = 0; c < end - first; ++c)
                line[static_cast<std::size_t>(c)] = fp8Of<Code>(toFloat(from[c]) * factor);
            for (std::int64_t c = 0; c < end - first; ++c)
                turned[(first + c) * rows + r] = line[static_cast<std::size_t>(c)];
        }
    });
}

// Elements of one block, up to `end`; its 16 values are made once.
template <typename T>
void expandBlock(const DequantizeNf4Args& args, std::int64_t block, std::int64_t end)
{
    const auto* tables = args.tables.as<const float>();
    const auto* codes = args.codes.as<const std::uint8_t>();
    T* out = args.out.as<T>();
    const float absmax = tables[kNf4Book + args.absmax.as<const std::uint8_t>()[block]] *
                             tables[kNf4Fixed + block / kNf4Nested] +
                         tables[kNf4Fixed - 1];
    std::array<T, kNf4Book> values;
    for (std::size_t code = 0; code < values.size(); ++code)
        values[code] = fromFloat<T>(rounded<Bf16>(tables[code] * absmax));
    for (std::int64_t i = block * kNf4Block; i < end; i += 2) {
        const std::uint8_t pair = codes[i / 2];
        out[i] = values[pair >> 4U];
        if (i + 1 < end)
            out[i + 1] = values[pair & 0xFU];
    }
}

} // namespace

void dequantizeNf4(const DequantizeNf4Args& args, ThreadPool& pool)
{
    const std::int64_t count = args.out.count();
    withType(args.out.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const auto expand = [&](std::int64_t block, std::int64_t end) {
            for (; block < end; ++block)
                expandBlock<T>(args, block, std::min(count, (block + 1) * kNf4Block));
        };
        forBlocks(pool, args.absmax.count(), kElementBlock / kNf4Block, expand);
    });
}

void quantize(const QuantizeArgs& args, ThreadPool& pool)
{
    findLargest(args, pool);
    const auto* partial = args.partial.as<const std::int32_t>();
    const auto largest =
        static_cast<std::uint32_t>(*std::max_element(partial, partial + kQuantizePartials));
    const DType type = args.codes.data ? args.codes.dtype : args.turned.dtype;
    withCode(type, [&](auto* tag) {
        using Code = std::remove_pointer_t<decltype(tag)>;
        const Fp8Scale scale = fp8Scale<Code>(largest);
        *args.scale.as<float>() = scale.scale;
        if (args.codes.data)
            writeCodes<Code>(args, scale.factor, pool);
        if (args.turned.data)
            writeTurned<Code>(args, scale.factor, pool);
    });
}

} // namespace mr::cpu
