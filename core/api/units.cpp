#include <millrace/run_spec.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace mr {

namespace {

struct Unit {
    std::string_view name; // lower case
    double bytes;
};

constexpr std::array<Unit, 10> kUnits = {
    {{"", 1.0}, {"b", 1.0}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"kib", 1024.0},
        {"mib", 1048576.0}, {"gib", 1073741824.0}, {"tib", 1099511627776.0}}};

// An exact double and an exact signed 64-bit number; no machine has so much.
constexpr double kMostBytes = 0x1p62;

Status refuse(std::string_view text, const std::string& right)
{
    return Status::error(
        ErrorKind::InvalidArgument, "\"" + std::string(text) + "\" is not " + right);
}

std::string lower(std::string_view text)
{
    std::string out;
    for (const char c : text)
        out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    return out;
}

// Negative if `text` is no amount.
double amount(std::string_view text)
{
    double number = 0.0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number) || std::signbit(number))
        return -1.0;
    std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
    while (!rest.empty() && rest.front() == ' ')
        rest.remove_prefix(1);
    const std::string unit = lower(rest);
    for (const Unit& known : kUnits)
        if (unit == known.name)
            return number * known.bytes;
    return -1.0;
}

} // namespace

Result<std::uint64_t> parseBytes(std::string_view text)
{
    const double bytes = amount(text);
    if (bytes < 0.0)
        return refuse(text, "an amount of bytes; write it as 6GiB, 200GB or 1500000");
    if (bytes > kMostBytes)
        return refuse(text, "an amount of bytes that any machine has");
    return static_cast<std::uint64_t>(bytes);
}

Result<double> parseRate(std::string_view text)
{
    const bool perSecond = text.ends_with("/s");
    const double bytes = perSecond ? amount(text.substr(0, text.size() - 2)) : -1.0;
    if (bytes <= 0.0)
        return refuse(text, "a rate; write it as 12GB/s, above 0");
    if (bytes > kMostBytes)
        return refuse(text, "a rate that any link has");
    return bytes;
}

} // namespace mr
