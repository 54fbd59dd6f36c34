#include "core/gguf/gguf_value.h"

#include <array>

namespace mr {

namespace {

GgufValue listOf(GgufValueType element, GgufValue::Data data)
{
    return {GgufValueType::Array, element, std::move(data)};
}

template <typename T>
std::vector<std::int64_t> wholeNumbers(const std::vector<T>& values)
{
    return {values.begin(), values.end()};
}

} // namespace

std::string_view ggufValueTypeName(GgufValueType type) noexcept
{
    constexpr std::array<std::string_view, 13> kNames = {"u8", "i8", "u16", "i16", "u32", "i32",
        "f32", "bool", "string", "array", "u64", "i64", "f64"};
    const auto index = static_cast<std::size_t>(type);
    return index < kNames.size() ? kNames[index] : "unknown";
}

GgufValue GgufValue::u32(std::uint32_t value)
{
    return {GgufValueType::U32, {}, std::uint64_t{value}};
}

GgufValue GgufValue::i32(std::int32_t value)
{
    return {GgufValueType::I32, {}, std::int64_t{value}};
}

GgufValue GgufValue::u64(std::uint64_t value)
{
    return {GgufValueType::U64, {}, value};
}

GgufValue GgufValue::f32(float value)
{
    return {GgufValueType::F32, {}, double{value}};
}

GgufValue GgufValue::boolean(bool value)
{
    return {GgufValueType::Bool, {}, value};
}

GgufValue GgufValue::string(std::string value)
{
    return {GgufValueType::String, {}, std::move(value)};
}

GgufValue GgufValue::strings(std::vector<std::string> values)
{
    return listOf(GgufValueType::String, std::move(values));
}

GgufValue GgufValue::f32s(const std::vector<float>& values)
{
    return listOf(GgufValueType::F32, std::vector<double>(values.begin(), values.end()));
}

GgufValue GgufValue::i32s(const std::vector<std::int32_t>& values)
{
    return listOf(GgufValueType::I32, wholeNumbers(values));
}

GgufValue GgufValue::u32s(const std::vector<std::uint32_t>& values)
{
    return listOf(GgufValueType::U32, wholeNumbers(values));
}

GgufValue GgufValue::bools(const std::vector<bool>& values)
{
    return listOf(GgufValueType::Bool, wholeNumbers(values));
}

} // namespace mr
