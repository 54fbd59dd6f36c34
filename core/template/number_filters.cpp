// The filters of chat templates that return a number.

#include "core/base/shown_text.h"
#include "core/template/filters.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace mr::tpl {
namespace {

bool readReal(std::string text, double& out)
{
    const Range range = stripped(text, true, true);
    text = text.substr(range.begin, range.end - range.begin);
    if (text.size() > 1 && text[0] == '+' && text[1] != '-')
        text.erase(0, 1);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size();
}

} // namespace

Value toInt(Evaluator& evaluator, const Value& input, const Bound& in)
{
    const Value fallback = in[0] != nullptr ? *in[0] : Value::integer(0);
    if (input.is(Kind::Undefined))
        return evaluator.fail(shownName(input.name()) + " is undefined");
    if (input.isIntegral())
        return Value::integer(input.asInt());
    if (input.is(Kind::String)) {
        const std::string& text = input.text().bytes();
        const Range range = stripped(text, true, true);
        const char* const end = text.data() + range.end;
        const std::size_t plus = range.begin + 1 < range.end && text[range.begin] == '+' ? 1 : 0;
        std::int64_t whole = 0;
        const auto read = std::from_chars(text.data() + range.begin + plus, end, whole);
        if (range.begin < range.end && read.ec == std::errc() && read.ptr == end)
            return Value::integer(whole);
    }
    double real = 0;
    if (input.is(Kind::Float))
        real = input.asReal();
    else if (!input.is(Kind::String) || !readReal(input.text().bytes(), real))
        return fallback;
    if (std::isnan(real) || std::isinf(real))
        return fallback;
    return std::abs(real) < 9e18 ? Value::integer(static_cast<std::int64_t>(real))
                                 : evaluator.fail("a number is larger than 64 bits");
}

Value toFloat(Evaluator& evaluator, const Value& input, const Bound& in)
{
    if (input.is(Kind::Undefined))
        return evaluator.fail(shownName(input.name()) + " is undefined");
    double real = 0;
    if (input.isNumber())
        return Value::real(input.asReal());
    if (input.is(Kind::String) && readReal(input.text().bytes(), real))
        return Value::real(real);
    return in[0] != nullptr ? *in[0] : Value::real(0);
}

Value absolute(Evaluator& evaluator, const Value& input, const Bound&)
{
    if (input.is(Kind::Float))
        return Value::real(std::abs(input.asReal()));
    if (!input.isIntegral() || input.asInt() == std::numeric_limits<std::int64_t>::min())
        return evaluator.fail(std::string("abs needs a number, not a ") + input.typeName());
    return Value::integer(std::abs(input.asInt()));
}

// Python rounds half to even, of the decimal digits the number really has; so does to_chars().
Value rounded(Evaluator& evaluator, const Value& input, const Bound& in)
{
    const std::string method = textOr(in[1], "common").bytes();
    if (method != "common" && method != "ceil" && method != "floor")
        return evaluator.fail("round takes \"common\", \"ceil\" or \"floor\"");
    const bool isWhole = in[0] == nullptr || in[0]->isIntegral();
    const std::int64_t digits = in[0] == nullptr ? 0 : in[0]->asInt();
    if (!input.isNumber() || !isWhole || digits < 0 || digits > 300)
        return evaluator.fail("round takes a number and 0 to 300 digits");
    if (method == "common" && input.isIntegral())
        return Value::integer(input.asInt());
    const double number = input.asReal();
    if (!std::isfinite(number))
        return method == "common" ? input : evaluator.fail("round needs a finite number");
    if (method != "common") {
        const double scale = std::pow(10.0, static_cast<double>(digits));
        const double scaled = number * scale;
        if (!std::isfinite(scaled))
            return evaluator.fail("round makes a number that is too large");
        return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
    }
    std::array<char, 700> buffer{};
    const char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
        std::chars_format::fixed, static_cast<int>(digits))
                                .ptr;
    double out = 0;
    std::from_chars(buffer.data(), end, out);
    return Value::real(out);
}

} // namespace mr::tpl
