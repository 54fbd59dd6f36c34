// "{} of {n:>5}".format(a, n=b) of chat templates.
//
// Forms that Python knows and this does not (fields within a field, !a, ...) are refused by name,
// so that nothing is written otherwise.

#include "core/base/shown_text.h"
#include "core/template/filters.h"
#include "core/template/format.h"
#include "core/template/text.h"

#include <algorithm>

namespace mr::tpl {
namespace {

// One rendering of "...".format(...).
class Braces
{
public:
    Braces(Evaluator& evaluator, const Value& text, const Arguments& arguments)
        : m_evaluator(evaluator)
        , m_text(text)
        , m_bytes(text.text().bytes())
        , m_arguments(arguments)
    {
    }

    Value run()
    {
        Text out;
        std::size_t at = 0;
        while (at < m_bytes.size() && !m_evaluator.failed()) {
            const std::size_t sign = std::min(m_bytes.find_first_of("{}", at), m_bytes.size());
            out.append(m_text.text(), at, sign);
            at = sign;
            if (at == m_bytes.size())
                break;
            if (at + 1 < m_bytes.size() && m_bytes[at + 1] == m_bytes[at]) {
                out.append(m_text.text(), at, at + 1);
                at += 2;
            } else {
                out.append(field(at));
            }
        }
        return m_evaluator.failed() ? Value() : m_evaluator.makeString(std::move(out));
    }

private:
    // {name.attribute[0]!r:>5} at `at`, which moves behind it.
    Text field(std::size_t& at)
    {
        const std::size_t end = m_bytes.find('}', at);
        if (m_bytes[at] == '}' || end == std::string::npos)
            return refuse("has a single brace; write it twice");
        std::string_view inside = std::string_view(m_bytes).substr(at + 1, end - at - 1);
        at = end + 1;
        if (inside.find('{') != std::string_view::npos)
            return refuse("has a field within a field, which is not supported");
        const std::size_t name = std::min(inside.find_first_of("!:"), inside.size());
        Value value = named(inside.substr(0, name));
        inside.remove_prefix(name);
        if (inside.starts_with('!')) {
            if (inside.size() < 2 || (inside[1] != 's' && inside[1] != 'r') ||
                (inside.size() > 2 && inside[2] != ':'))
                return refuse("has a conversion that is not supported; !s and !r are");
            if (m_evaluator.spend(8 * value.weight()))
                value = Value::string(inside[1] == 's' ? asText(value) : reprText(value));
            inside.remove_prefix(2);
        }
        return m_evaluator.failed() ? Text() : write(value, inside.substr(inside.empty() ? 0 : 1));
    }

    Value named(std::string_view path)
    {
        const std::size_t end = std::min(path.find_first_of(".["), path.size());
        Value value = first(path.substr(0, end));
        path.remove_prefix(end);
        while (!path.empty() && !m_evaluator.failed()) {
            const bool isItem = path[0] == '[';
            const std::size_t stop =
                isItem ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
            if (stop == std::string_view::npos || stop < 2) {
                refuse("has a field that cannot be read");
                break;
            }
            const std::string key(path.substr(1, stop - 1));
            std::size_t at = 0;
            const int number = takeNumber(key, at);
            value = !isItem            ? m_evaluator.attribute(value, key)
                    : at == key.size() ? m_evaluator.item(value, Value::integer(number))
                                       : m_evaluator.item(value, Value::string(key));
            path.remove_prefix(stop + (isItem ? 1 : 0));
        }
        return value;
    }

    Value first(std::string_view name)
    {
        std::size_t at = 0;
        const int number = takeNumber(name, at);
        if (at != name.size()) {
            for (const auto& [known, value] : m_arguments.named)
                if (known == name)
                    return value;
            refuse("has the name " + shownName(name) + ", which it is not given");
            return {};
        }
        m_isCounted |= name.empty();
        m_isNumbered |= !name.empty();
        const std::size_t index = name.empty() ? m_next++ : static_cast<std::size_t>(number);
        if (index < m_arguments.positional.size() && !(m_isCounted && m_isNumbered))
            return m_arguments.positional[index];
        refuse(m_isCounted && m_isNumbered ? "mixes {} and {0}" : "has more places than values");
        return {};
    }

    Text write(const Value& value, std::string_view form)
    {
        if (!m_evaluator.spend(8 * value.weight()))
            return {};
        if (form.empty())
            return asText(value);
        FormatSpec spec;
        spec.flags = m_text.text().anyFlags();
        const bool isRead = read(form, spec);
        if (m_evaluator.failed() || !isWithinLimits(m_evaluator, spec))
            return {};
        if (!isRead || !suits(value, spec))
            return refuse(std::string("writes a ") + value.typeName() + " by " + shownName(form) +
                          ", which is not supported");
        return value.is(Kind::String) ? padded(cut(value.text(), spec.precision), 0, spec, '<')
                                      : numberAs(value, spec);
    }

    bool suits(const Value& value, const FormatSpec& spec) const
    {
        const auto isOneOf = [&spec](std::string_view types) {
            return spec.type == '\0' || types.find(spec.type) != std::string_view::npos;
        };
        if (value.is(Kind::String))
            return isOneOf("s") && spec.sign == '-' && !spec.isOther && spec.align != '=' &&
                   !m_isZero && !spec.hasCommas;
        if (spec.hasCommas && (m_isZero || !isOneOf("dfF")))
            return false;
        if (value.isIntegral() && isOneOf("dxXob"))
            return spec.precision < 0;
        const bool isOpen = spec.type == '\0' && spec.precision >= 0; // has rules of its own
        return value.isNumber() && isOneOf("eEfFgG%") && !isOpen && !spec.isOther;
    }

    // [[fill]align][sign][#][0][width][,][.precision][type]
    bool read(std::string_view form, FormatSpec& spec)
    {
        const auto isAlign = [&](std::size_t at) {
            return at < form.size() &&
                   std::string_view("<>^=").find(form[at]) != std::string_view::npos;
        };
        std::size_t at = 0;
        takeCharacter(form, at);
        const bool hasFill = isAlign(at);
        if (hasFill) {
            spec.fill = form.substr(0, at);
            spec.align = form[at++];
        } else {
            at = 0;
            if (isAlign(0))
                spec.align = form[at++];
        }
        if (at < form.size() && std::string_view("+- ").find(form[at]) != std::string_view::npos)
            spec.sign = form[at++];
        spec.isOther = at < form.size() && form[at] == '#';
        at += spec.isOther ? 1 : 0;
        m_isZero = at < form.size() && form[at] == '0';
        if (m_isZero && !hasFill)
            spec.fill = "0";
        if (m_isZero && spec.align == '\0')
            spec.align = '=';
        spec.width = takeNumber(form, at);
        spec.hasCommas = at < form.size() && form[at] == ',';
        at += spec.hasCommas ? 1 : 0;
        if (at + 1 < form.size() && form[at] == '.' && isDigit(form[at + 1]))
            spec.precision = takeNumber(form, ++at);
        if (at < form.size())
            spec.type = form[at++];
        return at == form.size();
    }

    Text refuse(const std::string& why)
    {
        m_evaluator.fail("the format " + shownName(m_bytes) + " " + why);
        return {};
    }

    Evaluator& m_evaluator;
    const Value& m_text;
    const std::string& m_bytes;
    const Arguments& m_arguments;
    std::size_t m_next = 0;
    bool m_isCounted = false;
    bool m_isNumbered = false;
    bool m_isZero = false;
};

} // namespace

Value formatBraces(Evaluator& evaluator, const Value& text, const Arguments& arguments)
{
    if (text.isMarkup())
        return evaluator.fail("\"format\" of an escaped text (|safe, |e) is not supported");
    if (!evaluator.spend(text.weight()))
        return {};
    return Braces(evaluator, text, arguments).run();
}

} // namespace mr::tpl
