// Expressions of a chat template: names, subscripts, calls.

#include "core/base/shown_text.h"
#include "core/data/template_evaluator.h"

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

Arguments Evaluator::evalArguments(const Node& node)
{
    Arguments out;
    const std::size_t named = node.children.size() - node.names.size();
    for (std::size_t i = 1; i < node.children.size() && !failed(); ++i) {
        Value value = eval(*node.children[i]);
        if (i < named)
            out.positional.push_back(std::move(value));
        else
            out.named.emplace_back(node.names[i - named], std::move(value));
    }
    return out;
}

Value Evaluator::evalCall(const Node& node)
{
    const Value callee = eval(*node.children[0]);
    const Arguments arguments = evalArguments(node);
    m_line = node.line;
    return failed() ? Value() : call(callee, arguments);
}

Value Evaluator::call(const Value& callee, const Arguments& arguments)
{
    switch (callee.kind()) {
    case Kind::Undefined:
        return fail(shownName(callee.name()) + " is not a function that is known here");
    case Kind::Macro:
        return callMacro(*callee.macro(), arguments);
    case Kind::Function:
        return callFunction(callee.name(), arguments);
    case Kind::Method: {
        const BoundMethod& method = callee.bound();
        if (method.self.is(Kind::Loop))
            return loopCall(*method.self.loop(), method.name, arguments);
        return runMethod(*this, method, arguments);
    }
    default:
        return fail(std::string("a value of type ") + callee.typeName() + " cannot be called");
    }
}

Value Evaluator::callMacro(const Macro& macro, const Arguments& arguments)
{
    const Node& node = *macro.node;
    std::string parameters;
    for (const std::string& name : node.names)
        parameters += name + " ";
    const std::vector<const Value*> given = bind(node.text, parameters, arguments);
    if (failed())
        return {};
    Scope* const outer = m_scope;
    m_scope = macro.scope;
    m_scope = push();
    const std::size_t defaults = node.children.size() - 1;
    const std::size_t firstDefault = node.names.size() - defaults;
    for (std::size_t i = 0; i < node.names.size(); ++i) {
        Value value = given[i] != nullptr ? *given[i]
                      : i >= firstDefault ? eval(*node.children[1 + i - firstDefault])
                                          : Value::undefined(node.names[i]);
        m_scope->set(node.names[i], std::move(value));
    }
    Value out = makeString(capture(*node.children[0]));
    m_scope = outer;
    return out;
}

std::vector<const Value*> Evaluator::bind(
    std::string_view callee, std::string_view parameters, const Arguments& arguments)
{
    std::vector<std::string_view> names;
    for (std::size_t at = 0; at < parameters.size();) {
        const std::size_t end = std::min(parameters.find(' ', at), parameters.size());
        names.push_back(parameters.substr(at, end - at));
        at = end + 1;
    }
    std::vector<const Value*> out(names.size(), nullptr);
    if (arguments.positional.size() > names.size())
        fail(shownName(callee) + " takes at most " + std::to_string(names.size()) +
             " arguments, not " + std::to_string(arguments.positional.size()));
    for (std::size_t i = 0; i < arguments.positional.size() && i < out.size(); ++i)
        out[i] = &arguments.positional[i];
    for (const auto& [name, value] : arguments.named) {
        const auto found = std::find(names.begin(), names.end(), name);
        const auto at = static_cast<std::size_t>(found - names.begin());
        if (found == names.end())
            fail(shownName(callee) + " has no argument " + shownName(name));
        else if (out[at] != nullptr)
            fail(shownName(callee) + " is given " + shownName(name) + " twice");
        else
            out[at] = &value;
    }
    return out;
}

Value Evaluator::callFunction(const std::string& name, const Arguments& arguments)
{
    if (name == "range")
        return makeRange(arguments);
    if (name == "namespace")
        return makeSpace(arguments);
    if (name == "strftime_now")
        return date(arguments);
    if (name == "raise_exception") {
        const auto given = bind(name, "message", arguments);
        return fail("the template refuses the conversation: " +
                    (given[0] != nullptr ? asText(*given[0]).bytes() : std::string()));
    }
    Pairs pairs; // dict
    if (!arguments.positional.empty() && arguments.positional[0].is(Kind::Dict))
        pairs = arguments.positional[0].pairs();
    else if (!arguments.positional.empty())
        return fail("dict() takes names with values, or another dict");
    for (const auto& [key, value] : arguments.named)
        pairs.emplace_back(Value::string(key), value);
    return makeDict(std::move(pairs));
}

Value Evaluator::makeRange(const Arguments& arguments)
{
    constexpr std::int64_t kMost = 100'000; // as Jinja's sandbox has it
    const auto given = bind("range", "a b step", arguments);
    for (const Value* value : given)
        if (!failed() && value != nullptr && !value->isIntegral())
            fail("range() takes whole numbers");
    if (failed() || given[0] == nullptr)
        return fail("range() takes one to three whole numbers");
    const std::int64_t begin = given[1] != nullptr ? given[0]->asInt() : 0;
    const std::int64_t end = given[1] != nullptr ? given[1]->asInt() : given[0]->asInt();
    const std::int64_t step = given[2] != nullptr ? given[2]->asInt() : 1;
    constexpr std::int64_t kFar = std::int64_t{1} << 60;
    if (step == 0 || std::max({begin, end, step}) > kFar || std::min({begin, end, step}) < -kFar)
        return fail("range() is given numbers that make no range");
    Items items;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
        if (static_cast<std::int64_t>(items.size()) == kMost)
            return fail("range() is longer than 100,000");
        items.push_back(Value::integer(i));
    }
    return makeList(std::move(items));
}

Value Evaluator::makeSpace(const Arguments& arguments)
{
    Scope* const space = push();
    space->parent = nullptr;
    if (arguments.positional.size() > 1 ||
        (arguments.positional.size() == 1 && !arguments.positional[0].is(Kind::Dict)))
        return fail("namespace() takes names with values");
    if (arguments.positional.size() == 1)
        for (const auto& [key, value] : arguments.positional[0].pairs())
            space->set(asText(key).bytes(), value);
    for (const auto& [key, value] : arguments.named)
        space->set(key, value);
    return Value::space(space);
}

Value Evaluator::date(const Arguments& arguments)
{
    const auto given = bind("strftime_now", "format", arguments);
    if (failed() || given[0] == nullptr || !given[0]->is(Kind::String))
        return fail("strftime_now() takes a format");
    std::array<char, 512> buffer{};
    const std::string& format = given[0]->text().bytes();
    const std::size_t bytes = std::strftime(buffer.data(), buffer.size(), format.c_str(), &m_now);
    if (bytes == 0 && !format.empty())
        return fail("strftime_now() makes a text that is empty or longer than 500 bytes");
    return makeString(Text(std::string_view(buffer.data(), bytes)));
}

} // namespace mr::tpl
