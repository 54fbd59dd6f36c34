#include "core/api/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::size_t kShownBytes = 60;

std::string rangeText(IntRange range)
{
    if (range.most == std::numeric_limits<std::int64_t>::max())
        return fmt::format("at least {}", range.least);
    return fmt::format("from {} to {}", range.least, range.most);
}

// False if the value is no whole number of 64 bits.
bool wholeNumber(const json& value, std::int64_t& out)
{
    if (value.is_number_unsigned()) {
        const auto number = value.get<std::uint64_t>();
        if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return false;
        out = static_cast<std::int64_t>(number);
        return true;
    }
    if (!value.is_number_integer())
        return false;
    out = value.get<std::int64_t>();
    return true;
}

} // namespace

std::string shown(const json& value)
{
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > kShownBytes)
        text = text.substr(0, kShownBytes) + "...";
    return text;
}

JsonFields::JsonFields(const json& object, std::string source)
    : m_object(object)
    , m_source(std::move(source))
{
    if (!object.is_object())
        m_status = Status::error(ErrorKind::InvalidArgument,
            m_source + ": a JSON object is expected, this is " + object.type_name());
}

const json* JsonFields::find(std::string_view key)
{
    if (!m_object.is_object())
        return nullptr;
    m_known.emplace(key);
    const auto at = m_object.find(std::string(key));
    return at == m_object.end() || at->is_null() ? nullptr : &*at;
}

std::int64_t JsonFields::integer(std::string_view key, IntRange range, std::int64_t fallback)
{
    const json* value = find(key);
    if (value == nullptr)
        return fallback;
    std::int64_t number = 0;
    if (wholeNumber(*value, number) && number >= range.least && number <= range.most)
        return number;
    fail(key, "is " + shown(*value) + "; it must be a whole number " + rangeText(range));
    return fallback;
}

std::uint64_t JsonFields::unsignedInteger(std::string_view key, std::uint64_t fallback)
{
    const json* value = find(key);
    if (value == nullptr)
        return fallback;
    if (value->is_number_unsigned())
        return value->get<std::uint64_t>();
    fail(key, "is " + shown(*value) + "; it must be a whole number that is not negative");
    return fallback;
}

double JsonFields::number(std::string_view key, double fallback)
{
    const json* value = find(key);
    if (value == nullptr)
        return fallback;
    if (value->is_number() && std::isfinite(value->get<double>()))
        return value->get<double>();
    fail(key, "is " + shown(*value) + "; it must be a number");
    return fallback;
}

bool JsonFields::boolean(std::string_view key, bool fallback)
{
    const json* value = find(key);
    if (value == nullptr)
        return fallback;
    if (value->is_boolean())
        return value->get<bool>();
    fail(key, "is " + shown(*value) + "; it must be true or false");
    return fallback;
}

std::string JsonFields::text(std::string_view key, std::string fallback)
{
    const json* value = find(key);
    if (value == nullptr)
        return fallback;
    if (value->is_string())
        return value->get<std::string>();
    fail(key, "is " + shown(*value) + "; it must be a string");
    return fallback;
}

std::int64_t JsonFields::requiredInteger(std::string_view key, IntRange range)
{
    if (find(key) == nullptr)
        fail(key, "is missing; it must be a whole number " + rangeText(range));
    return integer(key, range, range.least);
}

double JsonFields::requiredNumber(std::string_view key)
{
    if (find(key) == nullptr)
        fail(key, "is missing; it must be a number");
    return number(key, 0.0);
}

void JsonFields::fail(std::string_view key, const std::string& why)
{
    take(Status::error(
        ErrorKind::InvalidArgument, m_source + ": field \"" + std::string(key) + "\" " + why));
}

void JsonFields::take(const Status& status)
{
    if (m_status.ok())
        m_status = status;
}

std::vector<std::string> JsonFields::unknown() const
{
    std::vector<std::string> names;
    if (m_object.is_object())
        for (const auto& item : m_object.items())
            if (!m_known.contains(item.key()))
                names.push_back(item.key());
    return names;
}

} // namespace mr
