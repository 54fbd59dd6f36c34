#include "core/parquet/value_json.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <iterator>

namespace mr {
namespace {

void appendReal(double value, bool isSingle, std::string& out)
{
    if (!std::isfinite(value)) {
        out += "null";
        return;
    }
    const std::size_t begin = out.size();
    if (isSingle)
        fmt::format_to(std::back_inserter(out), "{}", static_cast<float>(value));
    else
        fmt::format_to(std::back_inserter(out), "{}", value);
    if (out.find_first_of(".e", begin) == std::string::npos)
        out += ".0";
}

struct Divided {
    std::int64_t whole;
    std::int64_t rest; // not negative
};

Divided divided(std::int64_t value, std::int64_t by)
{
    const std::int64_t rest = value % by;
    return rest < 0 ? Divided{value / by - 1, rest + by} : Divided{value / by, rest};
}

Status appendDate(std::int64_t days, std::string& out)
{
    constexpr std::int64_t kFirst = -719528; // 0000-01-01
    constexpr std::int64_t kLast = 2932896;  // 9999-12-31
    if (days < kFirst || days > kLast)
        return Status::error(ErrorKind::InvalidArgument, "a date lies outside the years 0 to 9999");
    const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
    fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}", static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
    return {};
}

// `digits` of a second's fraction.
Status appendTime(std::int64_t value, int digits, std::string& out)
{
    constexpr std::int64_t kDaySeconds = 86400;
    std::int64_t perSecond = 1;
    for (int i = 0; i < digits; ++i)
        perSecond *= 10;
    const Divided seconds = divided(value, perSecond);
    const Divided days = divided(seconds.whole, kDaySeconds);
    out += '"';
    MR_TRY(appendDate(days.whole, out));
    fmt::format_to(std::back_inserter(out), "T{:02}:{:02}:{:02}", days.rest / 3600,
        days.rest / 60 % 60, days.rest % 60);
    if (seconds.rest != 0)
        fmt::format_to(std::back_inserter(out), ".{:0{}}", seconds.rest, digits);
    out += '"';
    return {};
}

void appendWhole(const ParquetLeaf& leaf, std::int64_t value, std::string& out)
{
    const bool isShort = leaf.shape.storage.type == ParquetType::Int32;
    if (leaf.meaning != ParquetMeaning::Unsigned)
        fmt::format_to(std::back_inserter(out), "{}", value);
    else if (isShort)
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::uint32_t>(value));
    else
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::uint64_t>(value));
}

} // namespace

std::string jsonText(std::string_view text)
{
    std::string out;
    appendJsonText(text, out);
    return out;
}

void appendJsonText(std::string_view text, std::string& out)
{
    constexpr unsigned char kFirstPlain = 0x20;
    out += '"';
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= kFirstPlain)
            continue;
        out += text.substr(begin, i - begin);
        begin = i + 1;
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    }
    out += text.substr(begin);
    out += '"';
}

bool holdsText(const ParquetLeaf& leaf)
{
    return leaf.shape.storage.type == ParquetType::ByteArray ||
           leaf.shape.storage.type == ParquetType::FixedBytes;
}

Status appendJsonValue(const ParquetLeaf& leaf, const ParquetValue& value, std::string& out)
{
    const ParquetType type = leaf.shape.storage.type;
    switch (leaf.meaning) {
    case ParquetMeaning::Date:
        out += '"';
        MR_TRY(appendDate(value.whole, out));
        out += '"';
        return {};
    case ParquetMeaning::Millis:
        return appendTime(value.whole, 3, out);
    case ParquetMeaning::Micros:
        return appendTime(value.whole, 6, out);
    case ParquetMeaning::Nanos:
        return appendTime(value.whole, 9, out);
    default:
        break;
    }
    if (holdsText(leaf))
        appendJsonText(value.bytes, out);
    else if (type == ParquetType::Float || type == ParquetType::Double)
        appendReal(value.real, type == ParquetType::Float, out);
    else if (type == ParquetType::Boolean)
        out += value.whole != 0 ? "true" : "false";
    else
        appendWhole(leaf, value.whole, out);
    return {};
}

} // namespace mr
