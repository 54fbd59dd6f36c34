#include "core/template/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace mr::tpl {
namespace {

constexpr int kMostWidth = 1000; // characters
constexpr int kMostDigits = 300;

std::string withCommas(std::string digits)
{
    const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    for (std::size_t at = whole; at > 3;)
        digits.insert(at -= 3, ",");
    return digits;
}

std::string wholeDigits(std::int64_t number, const FormatSpec& spec, std::string& prefix)
{
    const auto large =
        number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    const char type = static_cast<char>(std::tolower(spec.type));
    const int base = type == 'x' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    std::array<char, 70> buffer{};
    char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), large, base).ptr;
    std::string out(buffer.data(), end);
    if (spec.isOther && base != 10)
        prefix = std::string("0") + spec.type;
    if (spec.type == 'X')
        std::transform(out.begin(), out.end(), out.begin(), ::toupper);
    return out;
}

std::string realDigits(double number, const FormatSpec& spec)
{
    const char type = static_cast<char>(std::tolower(spec.type));
    const double size = std::abs(number) * (type == '%' ? 100.0 : 1.0);
    if (type == '\0')
        return numberText(size);
    const auto form = type == 'e'   ? std::chars_format::scientific
                      : type == 'g' ? std::chars_format::general
                                    : std::chars_format::fixed;
    std::array<char, 700> buffer{}; // as C writes it, in any locale
    char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), size, form,
        spec.precision < 0 ? 6 : spec.precision)
                          .ptr;
    std::string out(buffer.data(), end);
    if (type != spec.type)
        std::transform(out.begin(), out.end(), out.begin(), ::toupper);
    return out + (type == '%' ? "%" : "");
}

} // namespace

int takeNumber(std::string_view text, std::size_t& at)
{
    int number = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
        number = std::min(number * 10 + (text[at++] - '0'), 100'000);
    return number;
}

bool isWithinLimits(Evaluator& evaluator, const FormatSpec& spec)
{
    if (spec.width <= kMostWidth && spec.precision <= kMostDigits)
        return evaluator.spend(static_cast<std::size_t>(spec.width) / 8 + 1);
    return evaluator.fail("a format is wider than 1000 characters or 300 digits").truth();
}

Text padded(const Text& text, std::size_t head, const FormatSpec& spec, char ownAlign)
{
    const auto count = static_cast<int>(text.characterCount());
    const int missing = std::max(spec.width - count, 0);
    const char align = spec.align != '\0' ? spec.align : ownAlign;
    const int before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    const auto fill = [&spec](int times) {
        std::string out;
        for (int i = 0; i < times; ++i)
            out += spec.fill;
        return out;
    };
    Text out;
    const std::size_t first = align == '=' ? head : 0;
    out.append(text, 0, first);
    out.append(fill(before), spec.flags);
    out.append(text, first, text.byteCount());
    out.append(fill(missing - before), spec.flags);
    return out;
}

Text cut(const Text& text, int characters)
{
    const std::vector<std::size_t> at = text.characters();
    if (characters < 0 || at.size() - 1 <= static_cast<std::size_t>(characters))
        return text;
    return text.slice(0, at[static_cast<std::size_t>(characters)]);
}

Text numberAs(const Value& value, const FormatSpec& spec)
{
    const bool isReal = value.is(Kind::Float) ||
                        (spec.type != '\0' &&
                            std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos);
    std::string prefix;
    std::string digits =
        isReal ? realDigits(value.asReal(), spec) : wholeDigits(value.asInt(), spec, prefix);
    if (spec.hasCommas)
        digits = withCommas(std::move(digits));
    const bool isBelow =
        isReal ? std::signbit(value.asReal()) && !std::isnan(value.asReal()) : value.asInt() < 0;
    std::string head = isBelow ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
    head += prefix;
    return padded(Text(head + digits, spec.flags), head.size(), spec, '>');
}

Text reprText(const Value& value)
{
    const bool isData = value.isSequence() || value.is(Kind::Dict);
    return Text(repr(value), isData                   ? std::uint8_t{kFromData}
                             : value.is(Kind::String) ? value.text().anyFlags()
                                                      : std::uint8_t{0});
}

} // namespace mr::tpl
