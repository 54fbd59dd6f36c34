// "%s of %d" % (a, b) of chat templates.
//
// Forms that Python knows and this does not (widths by *, %c, ...) are refused by name, so that
// nothing is written otherwise.

#include "core/base/shown_text.h"
#include "core/template/filters.h"
#include "core/template/format.h"

#include <algorithm>
#include <cmath>

namespace mr::tpl {
namespace {

// One rendering of "..." % values.
class Percent
{
public:
    Percent(Evaluator& evaluator, const Value& text, const Value& values)
        : m_evaluator(evaluator)
        , m_text(text)
        , m_bytes(text.text().bytes())
        , m_values(values)
    {
    }

    Value run()
    {
        Text out;
        std::size_t at = 0;
        while (at < m_bytes.size() && !m_evaluator.failed()) {
            const std::size_t sign = std::min(m_bytes.find('%', at), m_bytes.size());
            out.append(m_text.text(), at, sign);
            at = sign + 1;
            if (sign == m_bytes.size())
                break;
            if (at < m_bytes.size() && m_bytes[at] == '%') {
                out.append(m_text.text(), at, at + 1);
                ++at;
            } else {
                out.append(one(at));
            }
        }
        const bool isOne = !m_values.is(Kind::Tuple);
        const std::size_t given = isOne ? 1 : m_values.items().size();
        const bool mayRest = m_values.is(Kind::Dict) || m_values.is(Kind::List);
        if (m_used < given && !mayRest)
            m_evaluator.fail("a format has fewer places than it is given values");
        return m_evaluator.failed() ? Value() : m_evaluator.makeLike(m_text, std::move(out));
    }

private:
    // The place behind the sign at `at`, which moves behind it.
    Text one(std::size_t& at)
    {
        const Value* named = nullptr;
        if (at < m_bytes.size() && m_bytes[at] == '(')
            named = find(at);
        FormatSpec spec = flags(at);
        if (m_evaluator.failed() || !isWithinLimits(m_evaluator, spec))
            return {};
        if (at >= m_bytes.size())
            return refuse("is not complete");
        spec.type = m_bytes[at++];
        const Value* value = named != nullptr ? named : next();
        return value != nullptr ? write(*value, spec) : Text();
    }

    const Value* find(std::size_t& at)
    {
        const std::size_t end = m_bytes.find(')', at);
        if (end == std::string::npos || !m_values.is(Kind::Dict)) {
            refuse("needs a dict for its names");
            return nullptr;
        }
        const std::string name = m_bytes.substr(at + 1, end - at - 1);
        at = end + 1;
        const Value* found = m_values.find(name);
        if (found == nullptr)
            refuse("has the name " + shownName(name) + ", which the values lack");
        return found;
    }

    FormatSpec flags(std::size_t& at)
    {
        FormatSpec spec;
        spec.flags = m_text.text().anyFlags();
        bool isZero = false;
        for (; at < m_bytes.size() &&
               std::string_view("-+ 0#").find(m_bytes[at]) != std::string_view::npos;
             ++at) {
            const char c = m_bytes[at];
            isZero |= c == '0';
            spec.isOther |= c == '#';
            spec.align = c == '-' ? '<' : spec.align;
            spec.sign = c == '+' || (c == ' ' && spec.sign != '+') ? c : spec.sign;
        }
        m_isZero = isZero && spec.align == '\0';
        spec.width = takeNumber(m_bytes, at);
        if (at < m_bytes.size() && m_bytes[at] == '.')
            spec.precision = takeNumber(m_bytes, ++at);
        return spec;
    }

    const Value* next()
    {
        if (!m_values.is(Kind::Tuple)) {
            if (m_used++ == 0)
                return &m_values;
        } else if (m_used < m_values.items().size()) {
            return &m_values.items()[m_used++];
        }
        refuse("has more places than it is given values");
        return nullptr;
    }

    Text write(const Value& value, FormatSpec& spec)
    {
        if (!m_evaluator.spend(8 * value.weight()))
            return {};
        if (spec.type == 's' || spec.type == 'r') {
            Text text = spec.type == 's' ? asText(value) : reprText(value);
            if (m_text.isMarkup() && !(spec.type == 's' && value.isMarkup()))
                text = escaped(text);
            return padded(cut(text, spec.precision), 0, spec, '>');
        }
        const bool isWhole = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
        const bool isCode = spec.type == 'x' || spec.type == 'X' || spec.type == 'o';
        const bool isReal = std::string_view("eEfFgG").find(spec.type) != std::string_view::npos;
        if (!isWhole && !isCode && !isReal)
            return refuse(std::string("has the sign ") + shownName({&spec.type, 1}) +
                          ", which is not supported");
        if (!value.isNumber() || (isCode && (!value.isIntegral() || m_text.isMarkup())) ||
            (!isReal && spec.precision >= 0) || (isReal && spec.isOther))
            return refuse(std::string("cannot write a ") + value.typeName() + " as %" + spec.type);
        if (m_isZero) {
            spec.fill = "0";
            spec.align = '=';
        }
        if (isWhole && value.is(Kind::Float))
            return whole(value.asReal(), spec);
        return numberAs(value, spec);
    }

    Text whole(double number, FormatSpec& spec)
    {
        if (!(std::abs(number) < 9e18))
            return refuse("is given a number that is larger than 64 bits");
        return numberAs(Value::integer(static_cast<std::int64_t>(number)), spec);
    }

    Text refuse(const std::string& why)
    {
        m_evaluator.fail("the format " + shownName(m_bytes) + " " + why);
        return {};
    }

    Evaluator& m_evaluator;
    const Value& m_text;
    const std::string& m_bytes;
    const Value& m_values;
    std::size_t m_used = 0;
    bool m_isZero = false;
};

} // namespace

Value formatPercent(Evaluator& evaluator, const Value& text, const Value& values)
{
    if (!evaluator.spend(text.weight()))
        return {};
    return Percent(evaluator, text, values).run();
}

} // namespace mr::tpl
