#include "core/gguf/value_reader.h"

#include "core/base/shown_text.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace mr {

namespace {

using Type = GgufValueType;

bool isSigned(Type type)
{
    return type == Type::I8 || type == Type::I16 || type == Type::I32 || type == Type::I64;
}

// Any whole number, or a Bool; a U64 by its bits.
Result<std::int64_t> readWhole(HeaderBytes& in, Type type)
{
    const std::uint64_t offset = in.position();
    const std::uint64_t bytes = ggufValueBytes(type);
    std::uint64_t bits = 0;
    MR_TRY(in.read(std::as_writable_bytes(std::span(&bits, 1)).first(bytes)));
    if (type == Type::Bool && bits > 1)
        return in.error(offset, fmt::format("a bool of {}, where 0 or 1 is allowed", bits));
    const auto unused = static_cast<int>(64 - 8 * bytes);
    if (isSigned(type))
        return static_cast<std::int64_t>(bits << unused) >> unused;
    return static_cast<std::int64_t>(bits);
}

Result<double> readReal(HeaderBytes& in, Type type)
{
    if (type == Type::F64)
        return in.number<double>();
    MR_ASSIGN(const float value, in.number<float>());
    return double{value};
}

template <typename T, typename Read>
Result<GgufValue> readList(std::uint64_t count, Type element, Read&& read)
{
    std::vector<T> values;
    values.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        MR_ASSIGN(T value, read());
        values.push_back(std::move(value));
    }
    return GgufValue{Type::Array, element, std::move(values)};
}

Result<Type> readType(HeaderBytes& in, const std::string& key)
{
    const std::uint64_t offset = in.position();
    MR_ASSIGN(const auto number, in.number<std::uint32_t>());
    const auto type = static_cast<Type>(number);
    if (ggufValueBytes(type) == 0)
        return in.error(offset,
            fmt::format("key {} has the unknown value type {}; this program may be older than the "
                        "file",
                shownName(key), number));
    return type;
}

Result<GgufValue> readArray(HeaderBytes& in, const std::string& key)
{
    const std::uint64_t typeOffset = in.position();
    MR_ASSIGN(const Type element, readType(in, key));
    if (element == Type::Array)
        return in.error(typeOffset,
            fmt::format("key {} holds an array of arrays, which is not read", shownName(key)));
    const std::uint64_t offset = in.position();
    MR_ASSIGN(const auto count, in.number<std::uint64_t>());
    MR_TRY(in.checkRoom(offset, count, ggufValueBytes(element),
        fmt::format("key {} holds {} values of type {}", shownName(key), count,
            ggufValueTypeName(element))));
    if (element == Type::String)
        return readList<std::string>(count, element, [&] { return in.text(); });
    if (element == Type::F32 || element == Type::F64)
        return readList<double>(count, element, [&] { return readReal(in, element); });
    return readList<std::int64_t>(count, element, [&] { return readWhole(in, element); });
}

} // namespace

std::uint64_t ggufValueBytes(GgufValueType type) noexcept
{
    // An array: element type and count.
    constexpr std::array<std::uint8_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
    const auto index = static_cast<std::size_t>(type);
    return index < kBytes.size() ? kBytes[index] : 0;
}

Result<GgufValue> readGgufValue(HeaderBytes& in, const std::string& key)
{
    MR_ASSIGN(const Type type, readType(in, key));
    if (type == Type::Array)
        return readArray(in, key);
    if (type == Type::String) {
        MR_ASSIGN(std::string text, in.text());
        return GgufValue::string(std::move(text));
    }
    if (type == Type::F32 || type == Type::F64) {
        MR_ASSIGN(const double value, readReal(in, type));
        return GgufValue{type, {}, value};
    }
    MR_ASSIGN(const std::int64_t value, readWhole(in, type));
    if (type == Type::Bool)
        return GgufValue::boolean(value != 0);
    if (isSigned(type))
        return GgufValue{type, {}, value};
    return GgufValue{type, {}, static_cast<std::uint64_t>(value)};
}

} // namespace mr
