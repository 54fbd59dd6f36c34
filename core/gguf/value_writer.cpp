#include "core/gguf/value_writer.h"

#include "core/base/shown_text.h"
#include "core/gguf/value_reader.h"

#include <vector>

namespace mr {

namespace {

// The low bytes of a whole number, as many as its type has.
void appendWhole(std::string& out, GgufValueType type, std::uint64_t bits)
{
    appendBytes(out, std::as_bytes(std::span(&bits, 1)).first(ggufValueBytes(type)));
}

void appendReal(std::string& out, GgufValueType type, double value)
{
    if (type == GgufValueType::F64)
        appendNumber(out, value);
    else
        appendNumber(out, static_cast<float>(value));
}

bool isReal(GgufValueType type)
{
    return type == GgufValueType::F32 || type == GgufValueType::F64;
}

// False: the data is of another type.
bool appendScalar(std::string& out, const GgufValue& value)
{
    const GgufValueType type = value.type;
    if (const auto* text = std::get_if<std::string>(&value.data)) {
        appendText(out, *text);
        return type == GgufValueType::String;
    }
    if (const auto* real = std::get_if<double>(&value.data)) {
        appendReal(out, type, *real);
        return isReal(type);
    }
    const bool isWhole = type != GgufValueType::String && !isReal(type);
    if (const auto* truth = std::get_if<bool>(&value.data)) {
        appendWhole(out, type, *truth ? 1 : 0);
        return type == GgufValueType::Bool;
    }
    if (const auto* bits = std::get_if<std::uint64_t>(&value.data)) {
        appendWhole(out, type, *bits);
        return isWhole;
    }
    const auto* number = std::get_if<std::int64_t>(&value.data);
    if (number)
        appendWhole(out, type, static_cast<std::uint64_t>(*number));
    return number && isWhole;
}

template <typename T, typename Append>
bool appendList(std::string& out, const std::vector<T>& values, Append&& append)
{
    appendNumber<std::uint64_t>(out, values.size());
    for (const T& value : values)
        append(value);
    return !values.empty();
}

// False: the data is of another type, or there is none.
bool appendArray(std::string& out, const GgufValue& value)
{
    const GgufValueType element = value.element;
    appendNumber(out, static_cast<std::uint32_t>(element));
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value.data))
        return element == GgufValueType::String &&
               appendList(out, *texts, [&](const std::string& text) { appendText(out, text); });
    if (const auto* reals = std::get_if<std::vector<double>>(&value.data))
        return isReal(element) &&
               appendList(out, *reals, [&](double real) { appendReal(out, element, real); });
    const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value.data);
    return numbers && element != GgufValueType::String && element != GgufValueType::Array &&
           !isReal(element) && appendList(out, *numbers, [&](std::int64_t number) {
               appendWhole(out, element, static_cast<std::uint64_t>(number));
           });
}

} // namespace

void appendBytes(std::string& out, std::span<const std::byte> bytes)
{
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void appendText(std::string& out, std::string_view text)
{
    appendNumber<std::uint64_t>(out, text.size());
    out += text;
}

Status appendValue(std::string& out, std::string_view key, const GgufValue& value)
{
    appendText(out, key);
    appendNumber(out, static_cast<std::uint32_t>(value.type));
    const bool fits =
        value.type == GgufValueType::Array ? appendArray(out, value) : appendScalar(out, value);
    if (fits)
        return {};
    return Status::error(
        ErrorKind::InvalidArgument, "key " + shownName(key) + " has no value of its type " +
                                        std::string(ggufValueTypeName(value.type)) +
                                        ", or an array without elements, which readers refuse");
}

} // namespace mr
