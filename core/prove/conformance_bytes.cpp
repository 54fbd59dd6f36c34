#include "core/prove/conformance_bytes.h"

#include "core/prove/conformance_fp8.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace mr::conformance {

float roundToBf16(float x) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
}

namespace {

void encode(DType type, double value, std::byte* to)
{
    const auto put = [to](auto number) { std::memcpy(to, &number, sizeof number); };
    switch (type) {
    case DType::F32:
        return put(static_cast<float>(value));
    case DType::BF16:
        return put(static_cast<std::uint16_t>(
            std::bit_cast<std::uint32_t>(roundToBf16(static_cast<float>(value))) >> 16));
    case DType::U8:
        return put(static_cast<std::uint8_t>(value));
    case DType::I8:
        return put(static_cast<std::int8_t>(value));
    case DType::U16:
        return put(static_cast<std::uint16_t>(value));
    case DType::I16:
        return put(static_cast<std::int16_t>(value));
    case DType::I32:
        return put(static_cast<std::int32_t>(value));
    case DType::F64:
        return put(value);
    case DType::E4M3:
    case DType::E5M2:
        return put(fp8Code(type, value));
    }
}

template <typename T>
double read(const std::byte* from)
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return static_cast<double>(value);
}

} // namespace

void encodeAs(DType type, const Values& values, std::span<std::byte> to)
{
    for (std::size_t i = 0; i < values.size(); ++i)
        encode(type, values[i], to.data() + i * sizeOf(type));
}

std::vector<std::byte> encodedAs(DType type, const Values& values)
{
    std::vector<std::byte> bytes(values.size() * sizeOf(type));
    encodeAs(type, values, bytes);
    return bytes;
}

double decode(DType type, const std::byte* from)
{
    switch (type) {
    case DType::F32:
        return read<float>(from);
    case DType::BF16:
        return static_cast<double>(
            std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(from)) << 16));
    case DType::U8:
        return read<std::uint8_t>(from);
    case DType::I8:
        return read<std::int8_t>(from);
    case DType::U16:
        return read<std::uint16_t>(from);
    case DType::I16:
        return read<std::int16_t>(from);
    case DType::I32:
        return read<std::int32_t>(from);
    case DType::F64:
        return read<double>(from);
    case DType::E4M3:
    case DType::E5M2:
        return fp8Value(type, static_cast<std::uint8_t>(*from));
    }
    return 0.0;
}

} // namespace mr::conformance
