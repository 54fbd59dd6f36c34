// Expressions of a chat template: names, lists, subscripts, comparisons.

#include "core/base/shown_text.h"
#include "core/template/evaluator.h"

#include <algorithm>
#include <array>

namespace mr::tpl {
namespace {

constexpr std::array<std::string_view, 5> kFunctions{
    "range", "dict", "namespace", "raise_exception", "strftime_now"};

} // namespace

bool isFunction(std::string_view name) noexcept
{
    return std::find(kFunctions.begin(), kFunctions.end(), name) != kFunctions.end();
}

Value Evaluator::eval(const Node& node)
{
    if (failed() || !spend(1))
        return {};
    m_line = node.line;
    if (++m_depth > m_limits.depth)
        fail("nested too deeply");
    Value out = failed() ? Value() : evalOp(node);
    --m_depth;
    return out;
}

Value Evaluator::evalOp(const Node& node)
{
    switch (node.op) {
    case Op::Constant:
        return node.value;
    case Op::Name:
        return evalName(node);
    case Op::List:
    case Op::Tuple:
        return evalList(node);
    case Op::Dict:
        return evalDict(node);
    case Op::Attribute:
        return attribute(eval(*node.children[0]), node.text);
    case Op::Subscript:
        return evalSubscript(node);
    case Op::Call:
        return evalCall(node);
    case Op::Filter: {
        const Value input = eval(*node.children[0]);
        const Arguments arguments = evalArguments(node);
        m_line = node.line;
        return failed() ? Value() : filter(node.text, input, arguments);
    }
    case Op::Test: {
        const Value input = eval(*node.children[0]);
        const Arguments arguments = evalArguments(node);
        return failed() ? Value() : test(node.text, input, arguments);
    }
    case Op::Captured:
        return m_captured;
    case Op::Concat:
        return evalConcat(node);
    case Op::Compare:
        return evalCompare(node);
    default:
        return evalChoice(node);
    }
}

Value Evaluator::evalChoice(const Node& node)
{
    const Value first = eval(*node.children[0]);
    if (failed())
        return {};
    switch (node.op) {
    case Op::Not:
        return Value::boolean(!first.truth());
    case Op::And:
        return first.truth() ? eval(*node.children[1]) : first;
    case Op::Or:
        return first.truth() ? first : eval(*node.children[1]);
    case Op::Choice:
        if (first.truth())
            return eval(*node.children[1]);
        return node.children[2] != nullptr ? eval(*node.children[2])
                                           : Value::undefined("the value of an if without else");
    case Op::Plus:
        return arithmetic("+", Value::integer(0), first);
    case Op::Negate:
        return first.is(Kind::Float) ? Value::real(-first.asReal())
                                     : arithmetic("-", Value::integer(0), first);
    default: {
        const Value second = eval(*node.children[1]);
        m_line = node.line;
        return failed() ? Value() : arithmetic(node.text, first, second);
    }
    }
}

Value Evaluator::evalName(const Node& node)
{
    for (Scope* scope = m_scope; scope != nullptr; scope = scope->parent)
        if (const Value* value = scope->find(node.text); value != nullptr)
            return *value;
    return isFunction(node.text) ? Value::function(node.text) : Value::undefined(node.text);
}

Value Evaluator::evalList(const Node& node)
{
    Items items;
    for (const NodePtr& child : node.children)
        items.push_back(eval(*child));
    return failed() ? Value()
                    : makeList(std::move(items), node.op == Op::List ? Kind::List : Kind::Tuple);
}

Value Evaluator::evalDict(const Node& node)
{
    Pairs pairs;
    for (std::size_t i = 0; i < node.children.size(); i += 2) {
        Value key = eval(*node.children[i]);
        Value value = eval(*node.children[i + 1]);
        if (key.is(Kind::List) || key.is(Kind::Dict))
            return fail(std::string("a ") + key.typeName() + " cannot name a value of a dict");
        const auto same = std::find_if(pairs.begin(), pairs.end(),
            [&key](const auto& pair) { return equal(pair.first, key); });
        if (same != pairs.end())
            same->second = std::move(value);
        else
            pairs.emplace_back(std::move(key), std::move(value));
    }
    return failed() ? Value() : makeDict(std::move(pairs));
}

Value Evaluator::evalSubscript(const Node& node)
{
    const Value object = eval(*node.children[0]);
    const Node& index = *node.children[1];
    if (index.op != Op::Slice) {
        const Value key = eval(index);
        m_line = node.line;
        return failed() ? Value() : item(object, key);
    }
    std::array<Value, 3> parts{Value::none(), Value::none(), Value::none()};
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (index.children[i] != nullptr)
            parts[i] = eval(*index.children[i]);
    m_line = node.line;
    return failed() ? Value() : slice(object, parts[0], parts[1], parts[2]);
}

Value Evaluator::evalConcat(const Node& node)
{
    Text out;
    for (const NodePtr& child : node.children) {
        const Value value = eval(*child);
        if (!spend(value.weight()))
            return {};
        out.append(asText(value));
    }
    return failed() ? Value() : makeString(std::move(out));
}

// a < b < c holds when each comparison does; b is evaluated once.
Value Evaluator::evalCompare(const Node& node)
{
    Value left = eval(*node.children[0]);
    Value result;
    for (std::size_t i = 0; i < node.names.size() && !failed(); ++i) {
        Value right = eval(*node.children[i + 1]);
        m_line = node.line;
        result = failed() ? Value() : compared(node.names[i], left, right);
        if (!result.truth())
            return result;
        left = std::move(right);
    }
    return result;
}

} // namespace mr::tpl
