// Operators, attributes and subscripts on the values of a chat template.

#include "core/base/shown_text.h"
#include "core/template/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mr::tpl {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// Resolves one end of a slice as Python does.
std::int64_t clampIndex(std::int64_t index, std::int64_t count, bool backwards)
{
    if (index < 0)
        index = index < -count ? -1 : index + count;
    else
        return std::min(index, backwards ? count - 1 : count);
    return backwards ? index : std::max<std::int64_t>(index, 0);
}

std::vector<std::size_t> sliced(
    std::int64_t count, const Value& begin, const Value& end, std::int64_t step)
{
    const bool back = step < 0;
    const std::int64_t first =
        begin.is(Kind::None) ? (back ? count - 1 : 0) : clampIndex(begin.asInt(), count, back);
    const std::int64_t last =
        end.is(Kind::None) ? (back ? -1 : count) : clampIndex(end.asInt(), count, back);
    std::vector<std::size_t> out;
    for (std::int64_t i = first; back ? i > last : i < last;) {
        out.push_back(static_cast<std::size_t>(i));
        if (step > count || step < -count)
            break;
        i += step;
    }
    return out;
}

} // namespace

Value Evaluator::arithmetic(const std::string& op, const Value& a, const Value& b)
{
    if (a.is(Kind::Undefined) || b.is(Kind::Undefined))
        return fail(shownName((a.is(Kind::Undefined) ? a : b).name()) + " is undefined");
    if (a.isIntegral() && b.isIntegral() && op != "/")
        return integers(op, a.asInt(), b.asInt());
    if (a.isNumber() && b.isNumber())
        return reals(op, a.asReal(), b.asReal());
    if (op == "+")
        return joined(a, b);
    if (op == "%" && a.is(Kind::String))
        return formatPercent(*this, a, b);
    const bool times = op == "*";
    if (times && b.isIntegral() && (a.is(Kind::String) || a.isSequence()))
        return repeated(a, b.asInt());
    if (times && a.isIntegral() && (b.is(Kind::String) || b.isSequence()))
        return repeated(b, a.asInt());
    return fail(
        shownName(op) + " is not possible between " + a.typeName() + " and " + b.typeName());
}

Value Evaluator::integers(const std::string& op, std::int64_t a, std::int64_t b)
{
    std::int64_t out = 0;
    bool fits = true;
    if (op == "+") {
        fits = !__builtin_add_overflow(a, b, &out);
    } else if (op == "-") {
        fits = !__builtin_sub_overflow(a, b, &out);
    } else if (op == "*") {
        fits = !__builtin_mul_overflow(a, b, &out);
    } else if (op == "**") {
        if (b < 0)
            return reals(op, static_cast<double>(a), static_cast<double>(b));
        out = 1;
        const bool steady = a >= -1 && a <= 1; // needs no more than the parity of b
        for (std::int64_t i = steady && b > 1 ? 2 - b % 2 : b; i > 0 && fits; --i)
            fits = !__builtin_mul_overflow(out, a, &out);
    } else {
        if (b == 0)
            return fail("a division by zero");
        if (b == -1 && a == kLeast)
            return fail("a number is larger than 64 bits");
        const std::int64_t rest = a % b;
        const bool down = rest != 0 && (rest < 0) != (b < 0);
        out = op == "//" ? a / b - (down ? 1 : 0) : rest + (down ? b : 0);
    }
    return fits ? Value::integer(out) : fail("a number is larger than 64 bits");
}

Value Evaluator::reals(const std::string& op, double a, double b)
{
    if (op == "+")
        return Value::real(a + b);
    if (op == "-")
        return Value::real(a - b);
    if (op == "*")
        return Value::real(a * b);
    if (op == "**") {
        const double power = std::pow(a, b);
        return std::isfinite(power) ? Value::real(power) : fail("a power that is not a number");
    }
    if (b == 0)
        return fail("a division by zero");
    if (op == "/")
        return Value::real(a / b);
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
        rest += b;
    if (op == "%")
        return Value::real(rest);
    return Value::real(std::round((a - rest) / b));
}

Value Evaluator::joined(const Value& a, const Value& b)
{
    if (a.kind() != b.kind() || (!a.is(Kind::String) && !a.isSequence()))
        return fail(std::string("\"+\" is not possible between ") + a.typeName() + " and " +
                    b.typeName() + "; a number becomes text with ~ or |string");
    if (a.is(Kind::String)) {
        const bool isMarkup = a.isMarkup() || b.isMarkup();
        if (isMarkup && !spend(8 * (a.weight() + b.weight())))
            return {};
        Text out = isMarkup ? escapedText(a) : a.text();
        out.append(isMarkup ? escapedText(b) : b.text());
        return makeLike(a.isMarkup() ? a : b, std::move(out));
    }
    Items items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return makeList(std::move(items), a.kind());
}

Value Evaluator::repeated(const Value& value, std::int64_t count)
{
    const bool string = value.is(Kind::String);
    const std::size_t one =
        string ? value.text().byteCount() / 8 + 1 : 4 * value.items().size() + 1;
    const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
    if (times > static_cast<std::size_t>(m_limits.work) / one || !spend(times * one))
        return fail("a text or list is repeated too often");
    Text text;
    Items items;
    for (std::size_t i = 0; i < times; ++i) {
        if (string)
            text.append(value.text());
        else
            items.insert(items.end(), value.items().begin(), value.items().end());
    }
    return string ? makeLike(value, std::move(text)) : makeList(std::move(items), value.kind());
}

Value Evaluator::slice(const Value& object, const Value& begin, const Value& end, const Value& step)
{
    for (const Value* part : {&begin, &end, &step})
        if (!part->is(Kind::None) && !part->isIntegral())
            return fail(std::string("a slice takes whole numbers, not ") + part->typeName());
    const std::int64_t by = step.is(Kind::None) ? 1 : step.asInt();
    if (by == 0)
        return fail("a slice cannot go in steps of 0");
    if (object.is(Kind::String)) {
        if (!spend(object.text().byteCount()))
            return {};
        const std::vector<std::size_t> at = object.text().characters();
        Text out;
        for (const std::size_t i : sliced(static_cast<std::int64_t>(at.size()) - 1, begin, end, by))
            out.append(object.text(), at[i], at[i + 1]);
        return makeLike(object, std::move(out));
    }
    if (!object.isSequence())
        return object.is(Kind::Undefined)
                   ? fail(shownName(object.name()) + " is undefined")
                   : Value::undefined(std::string("a slice of a ") + object.typeName());
    Items items;
    for (const std::size_t i :
        sliced(static_cast<std::int64_t>(object.items().size()), begin, end, by))
        items.push_back(object.items()[i]);
    return makeList(std::move(items), object.kind());
}

Value Evaluator::item(const Value& object, const Value& key)
{
    if (object.is(Kind::Undefined))
        return fail(shownName(object.name()) + " is undefined");
    if (object.is(Kind::Dict)) {
        if (!spend(object.pairs().size()))
            return {};
        if (const Value* found = object.find(key); found != nullptr)
            return *found;
    }
    if (key.isIntegral() && (object.isSequence() || object.is(Kind::String))) {
        const bool string = object.is(Kind::String);
        const std::vector<std::size_t> at =
            string ? object.text().characters() : std::vector<std::size_t>();
        const auto count =
            static_cast<std::int64_t>(string ? at.size() - 1 : object.items().size());
        spend(at.size());
        const std::int64_t index = key.asInt() < 0 ? key.asInt() + count : key.asInt();
        if (index < 0 || index >= count)
            return Value::undefined(fmt::format("item {}", key.asInt()));
        const auto i = static_cast<std::size_t>(index);
        return string ? makeLike(object, object.text().slice(at[i], at[i + 1])) : object.items()[i];
    }
    if (key.is(Kind::String) && !object.is(Kind::Dict))
        return attribute(object, key.text().bytes());
    if (key.is(Kind::String)) {
        bool known = true;
        if (isMethod(Kind::Dict, key.text().bytes(), known))
            return attribute(object, key.text().bytes());
    }
    return Value::undefined(key.is(Kind::String) ? key.text().bytes() : repr(key));
}

Value Evaluator::attribute(const Value& object, const std::string& name)
{
    if (failed())
        return {};
    if (object.is(Kind::Undefined))
        return fail(shownName(object.name()) + " is undefined, so it has no " + shownName(name));
    if (object.is(Kind::Loop))
        return loopAttribute(*object.loop(), name);
    if (object.is(Kind::Namespace)) {
        const Value* found = object.scope()->find(name);
        return found != nullptr ? *found : Value::undefined(name);
    }
    bool known = true;
    if (isMethod(object.kind(), name, known))
        return known ? Value::method(object, name)
                     : fail("the method " + shownName(name) + " of a " + object.typeName() +
                            " is not supported");
    if (object.is(Kind::Dict) && spend(object.pairs().size()))
        if (const Value* found = object.find(name); found != nullptr)
            return *found;
    return Value::undefined(name);
}

Value Evaluator::loopAttribute(Loop& loop, const std::string& name)
{
    const auto count = static_cast<std::int64_t>(loop.items.size());
    const auto index = static_cast<std::int64_t>(loop.index);
    if (name == "index" || name == "index0")
        return Value::integer(index + (name == "index" ? 1 : 0));
    if (name == "revindex" || name == "revindex0")
        return Value::integer(count - index - (name == "revindex" ? 0 : 1));
    if (name == "first" || name == "last")
        return Value::boolean(name == "first" ? index == 0 : index + 1 == count);
    if (name == "length")
        return Value::integer(count);
    if (name == "depth" || name == "depth0")
        return Value::integer(loop.depth + (name == "depth" ? 1 : 0));
    if (name == "previtem")
        return index > 0 ? loop.items[loop.index - 1] : Value::undefined("loop.previtem");
    if (name == "nextitem")
        return index + 1 < count ? loop.items[loop.index + 1] : Value::undefined("loop.nextitem");
    if (name == "cycle" || name == "changed")
        return Value::method(Value::loop(&loop), name);
    return fail("\"loop." + name + "\" is not supported");
}

// loop(items) of a recursive loop: the loop once more, one level deeper, as a text.
Value Evaluator::loopAgain(const Loop& loop, const Arguments& arguments)
{
    if (!loop.node->isRecursive)
        return fail("loop() needs a loop that is marked \"recursive\"");
    const auto given = bind("loop", "items", arguments);
    if (failed() || given[0] == nullptr)
        return fail("loop() takes what it goes through next");
    Text out;
    Text* const outer = std::exchange(m_out, &out);
    Scope* const scope = std::exchange(m_scope, loop.scope);
    runLoop(*loop.node, *given[0], loop.depth + 1);
    m_scope = scope;
    m_out = outer;
    return makeString(std::move(out));
}

Value Evaluator::loopCall(Loop& loop, const std::string& name, const Arguments& arguments)
{
    if (name == "cycle") {
        if (arguments.positional.empty())
            return fail("loop.cycle() takes the values to go through");
        return arguments.positional[loop.index % arguments.positional.size()];
    }
    const bool same =
        loop.hasChanged && loop.changed.size() == arguments.positional.size() &&
        std::equal(loop.changed.begin(), loop.changed.end(), arguments.positional.begin(), equal);
    loop.hasChanged = true;
    loop.changed = arguments.positional;
    return Value::boolean(!same);
}

bool Evaluator::contains(const Value& container, const Value& wanted)
{
    if (container.is(Kind::String)) {
        if (!wanted.is(Kind::String)) {
            fail(std::string("only a text can be in a text, not a ") + wanted.typeName());
            return false;
        }
        return spend(container.text().byteCount() / 8) &&
               container.text().bytes().find(wanted.text().bytes()) != std::string::npos;
    }
    if (container.is(Kind::Dict))
        return spend(container.pairs().size()) && container.find(wanted) != nullptr;
    const Items items = iterate(container);
    if (!spend(items.size() + std::min(container.weight(), wanted.weight())))
        return false;
    return std::any_of(
        items.begin(), items.end(), [&wanted](const Value& item) { return equal(item, wanted); });
}

Value Evaluator::compared(const std::string& op, const Value& a, const Value& b)
{
    const std::size_t names = a.is(Kind::Dict) ? a.pairs().size() : 1;
    if (!spend(names * (1 + std::min(a.weight(), b.weight()))))
        return {};
    if (op == "==" || op == "!=")
        return Value::boolean(equal(a, b) == (op == "=="));
    if (op == "in" || op == "not in")
        return Value::boolean(contains(b, a) == (op == "in"));
    if (a.is(Kind::Undefined) || b.is(Kind::Undefined))
        return fail(shownName((a.is(Kind::Undefined) ? a : b).name()) + " is undefined");
    const bool nan = a.isNumber() && b.isNumber();
    const Order order = compare(a, b);
    if (order == Order::None && !nan)
        return fail(
            shownName(op) + " is not possible between " + a.typeName() + " and " + b.typeName());
    const bool less = op[0] == '<';
    const bool holds =
        order == (less ? Order::Less : Order::Greater) || (op.size() == 2 && order == Order::Equal);
    return Value::boolean(holds);
}

} // namespace mr::tpl
