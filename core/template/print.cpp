// Template values as text: str(), repr() and json.dumps() of Python.

#include "core/base/utf8.h"
#include "core/template/value.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr::tpl {
namespace {

std::string hex(char32_t c, int digits)
{
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out(static_cast<std::size_t>(digits), '0');
    for (auto at = out.rbegin(); at != out.rend(); ++at, c >>= 4)
        *at = kDigits[c & 0xF];
    return out;
}

// As Python's str.isprintable(): escapes spaces but U+0020, controls and unassigned characters.
bool isPrintable(char32_t c)
{
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return c == ' ';
    default:
        return true;
    }
}

std::string pythonQuoted(const std::string& bytes)
{
    const bool twice =
        bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
    const char quote = twice ? '"' : '\'';
    std::string out(1, quote);
    for (std::size_t at = 0; at < bytes.size();) {
        const char32_t c = takeCharacter(bytes, at);
        if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (!isPrintable(c))
            out += c < 0x100     ? "\\x" + hex(c, 2)
                   : c < 0x10000 ? "\\u" + hex(c, 4)
                                 : "\\U" + hex(c, 8);
        else if (c == '\\' || c == static_cast<char32_t>(quote))
            (out += '\\') += static_cast<char>(c);
        else
            appendCharacter(static_cast<std::int32_t>(c), out);
    }
    return out + quote;
}

std::string reprItems(const Value& value)
{
    const bool tuple = value.is(Kind::Tuple);
    std::string out = tuple ? "(" : "[";
    for (std::size_t i = 0; i < value.items().size(); ++i)
        out += (i == 0 ? "" : ", ") + repr(value.items()[i]);
    if (tuple && value.items().size() == 1)
        out += ',';
    return out + (tuple ? ")" : "]");
}

std::string reprPairs(const Value& value)
{
    std::string out = "{";
    for (const auto& [key, item] : value.pairs())
        out += (out.size() == 1 ? "" : ", ") + repr(key) + ": " + repr(item);
    return out + "}";
}

void escapeJson(char32_t c, bool ascii, std::string& out)
{
    static constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
    static constexpr std::string_view kLetters = "\"\\nrtbf";
    const std::size_t at = c < 128 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (at != std::string_view::npos)
        (out += '\\') += kLetters[at];
    else if (c < 32 || (ascii && c >= 127 && c < 0x10000))
        out += "\\u" + hex(c, 4);
    else if (ascii && c >= 0x10000)
        out += "\\u" + hex(0xD800 + ((c - 0x10000) >> 10), 4) + "\\u" +
               hex(0xDC00 + ((c - 0x10000) & 0x3FF), 4);
    else
        appendCharacter(static_cast<std::int32_t>(c), out);
}

void jsonText(const std::string& bytes, bool ascii, std::string& out)
{
    out += '"';
    for (std::size_t at = 0; at < bytes.size();)
        escapeJson(takeCharacter(bytes, at), ascii, out);
    out += '"';
}

std::string jsonNumber(double number)
{
    if (std::isnan(number))
        return "NaN";
    if (std::isinf(number))
        return number < 0 ? "-Infinity" : "Infinity";
    return numberText(number);
}

void jsonBreak(const JsonStyle& style, int depth, std::string& out)
{
    if (!style.hasIndent)
        return;
    out += '\n';
    for (int i = 0; i < depth; ++i)
        out += style.indent;
}

Status jsonList(const Value& value, const JsonStyle& style, std::string& out, int depth)
{
    out += '[';
    for (std::size_t i = 0; i < value.items().size(); ++i) {
        out += i == 0 ? "" : style.itemSeparator;
        jsonBreak(style, depth + 1, out);
        MR_TRY(writeJson(value.items()[i], style, out, depth + 1));
    }
    if (!value.items().empty())
        jsonBreak(style, depth, out);
    out += ']';
    return {};
}

Status jsonDict(const Value& value, const JsonStyle& style, std::string& out, int depth)
{
    std::vector<std::pair<std::string, const Value*>> pairs;
    for (const auto& [key, item] : value.pairs()) {
        std::string name;
        if (key.is(Kind::String))
            name = key.text().bytes();
        else if (key.is(Kind::Tuple))
            return Status::error(
                ErrorKind::InvalidArgument, "tojson cannot write a tuple as the name of a value");
        else
            MR_TRY(writeJson(key, {}, name));
        pairs.emplace_back(std::move(name), &item);
    }
    if (style.sortKeys)
        std::stable_sort(pairs.begin(), pairs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
    out += '{';
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        out += i == 0 ? "" : style.itemSeparator;
        jsonBreak(style, depth + 1, out);
        jsonText(pairs[i].first, style.ascii, out);
        out += style.keySeparator;
        MR_TRY(writeJson(*pairs[i].second, style, out, depth + 1));
    }
    if (!pairs.empty())
        jsonBreak(style, depth, out);
    out += '}';
    return {};
}

} // namespace

// The shortest digits that read back as `number`, with Python's choice between 0.0001 and 1e-05.
std::string numberText(double number)
{
    if (std::isnan(number))
        return "nan";
    if (std::isinf(number))
        return number < 0 ? "-inf" : "inf";
    std::array<char, 400> buffer{};
    char* const first = buffer.data();
    char* const limit = first + buffer.size();
    const double size = std::abs(number);
    const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
    const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
    std::string out(first, std::to_chars(first, limit, number, format).ptr);
    if (fixed && out.find('.') == std::string::npos)
        out += ".0";
    return out;
}

std::string repr(const Value& value)
{
    switch (value.kind()) {
    case Kind::Undefined:
        return "Undefined";
    case Kind::None:
        return "None";
    case Kind::Bool:
        return value.asBool() ? "True" : "False";
    case Kind::Int:
        return std::to_string(value.asInt());
    case Kind::Float:
        return numberText(value.asReal());
    case Kind::String:
        return value.isMarkup() ? "Markup(" + pythonQuoted(value.text().bytes()) + ")"
                                : pythonQuoted(value.text().bytes());
    case Kind::List:
    case Kind::Tuple:
        return reprItems(value);
    case Kind::Dict:
        return reprPairs(value);
    default:
        return std::string("<") + value.typeName() + ">";
    }
}

Text asText(const Value& value)
{
    if (value.is(Kind::String))
        return value.text();
    if (value.is(Kind::Undefined))
        return {};
    const bool data = value.isSequence() || value.is(Kind::Dict);
    return Text(repr(value), data ? std::uint8_t{kFromData} : std::uint8_t{0});
}

Status writeJson(const Value& value, const JsonStyle& style, std::string& out, int depth)
{
    switch (value.kind()) {
    case Kind::None:
        out += "null";
        return {};
    case Kind::Bool:
        out += value.asBool() ? "true" : "false";
        return {};
    case Kind::Int:
        out += std::to_string(value.asInt());
        return {};
    case Kind::Float:
        out += jsonNumber(value.asReal());
        return {};
    case Kind::String:
        jsonText(value.text().bytes(), style.ascii, out);
        return {};
    case Kind::List:
    case Kind::Tuple:
        return jsonList(value, style, out, depth);
    case Kind::Dict:
        return jsonDict(value, style, out, depth);
    default:
        return Status::error(ErrorKind::InvalidArgument,
            std::string("tojson cannot write a value of type ") + value.typeName());
    }
}

namespace {

Status convert(const nlohmann::ordered_json& json, int depth, Value& out);

Status convertList(const nlohmann::ordered_json& json, int depth, Value& out)
{
    Items items(json.size());
    for (std::size_t i = 0; i < items.size(); ++i)
        MR_TRY(convert(json[i], depth + 1, items[i]));
    out = Value::list(std::move(items));
    return {};
}

Status convertObject(const nlohmann::ordered_json& json, int depth, Value& out)
{
    Pairs pairs;
    for (const auto& [key, item] : json.items()) {
        pairs.emplace_back(Value::string(key, kFromData), Value());
        MR_TRY(convert(item, depth + 1, pairs.back().second));
    }
    out = Value::dict(std::move(pairs));
    return {};
}

Status convert(const nlohmann::ordered_json& json, int depth, Value& out)
{
    if (depth >= Value::kMaxNesting)
        return Status::error(ErrorKind::InvalidArgument, "lists and objects nest too deeply");
    if (json.is_array())
        return convertList(json, depth, out);
    if (json.is_object())
        return convertObject(json, depth, out);
    if (json.is_string())
        out = Value::string(json.get_ref<const std::string&>(), kFromData);
    else if (json.is_boolean())
        out = Value::boolean(json.get<bool>());
    else if (json.is_number_float())
        out = Value::real(json.get<double>());
    else if (json.is_number_unsigned() &&
             json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
        return Status::error(ErrorKind::InvalidArgument,
            "the whole number " + json.dump() + " does not fit 64 bits");
    else if (json.is_number())
        out = Value::integer(json.get<std::int64_t>());
    else
        out = Value::none();
    return {};
}

} // namespace

Result<Value> fromJson(const nlohmann::ordered_json& json)
{
    Value out;
    MR_TRY(convert(json, 0, out));
    return out;
}

} // namespace mr::tpl
