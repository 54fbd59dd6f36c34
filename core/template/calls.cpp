// Calls in a chat template: arguments, macros, the functions there are.

#include "core/base/shown_text.h"
#include "core/template/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mr::tpl {
namespace {

bool isSpread(const NodePtr& node)
{
    return node->op == Op::Spread || node->op == Op::SpreadPairs;
}

} // namespace

// Adds the arguments that * or ** spreads out of a value.
bool Evaluator::addSpread(const Node& spread, Arguments& out)
{
    const Value value = eval(*spread.children[0]);
    if (failed())
        return false;
    if (spread.op == Op::Spread) {
        const Items items = iterate(value);
        out.positional.insert(out.positional.end(), items.begin(), items.end());
        return !failed();
    }
    if (!value.is(Kind::Dict))
        return fail(std::string("** needs a dict, not a ") + value.typeName()).truth();
    for (const auto& [key, item] : value.pairs()) {
        if (!key.is(Kind::String))
            return fail("** needs a dict whose names are texts").truth();
        const std::string& name = key.text().bytes();
        const auto same = [&name](const auto& one) { return one.first == name; };
        if (std::any_of(out.named.begin(), out.named.end(), same))
            return fail("the argument " + shownName(name) + " is given twice").truth();
        out.named.emplace_back(name, item);
    }
    return spend(value.pairs().size() * (1 + out.named.size() / 8));
}

Arguments Evaluator::evalArguments(const Node& node)
{
    Arguments out;
    const auto spread = static_cast<std::size_t>(
        std::count_if(node.children.begin() + 1, node.children.end(), isSpread));
    std::size_t positional = node.children.size() - 1 - spread - node.names.size();
    auto name = node.names.begin();
    for (std::size_t i = 1; i < node.children.size() && !failed(); ++i) {
        const NodePtr& child = node.children[i];
        if (isSpread(child)) {
            addSpread(*child, out);
            continue;
        }
        Value value = eval(*child);
        if (positional > 0)
            out.positional.push_back(std::move(value));
        else
            out.named.emplace_back(*name++, std::move(value));
        positional -= positional > 0 ? 1 : 0;
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
    case Kind::Loop:
        return loopAgain(*callee.loop(), arguments);
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

namespace {

// Takes caller, varargs and kwargs out of `arguments` where the macro's body reads them.
std::vector<std::pair<std::string, Value>> takeUnbound(
    Evaluator& evaluator, const Node& macro, Arguments& arguments)
{
    std::vector<std::pair<std::string, Value>> out;
    const auto isParameter = [&macro](const std::string& name) {
        return std::find(macro.names.begin(), macro.names.end(), name) != macro.names.end();
    };
    const auto caller = std::find_if(arguments.named.begin(), arguments.named.end(),
        [](const auto& one) { return one.first == "caller"; });
    if (macro.asks.caller && !isParameter("caller")) {
        const bool isGiven = caller != arguments.named.end();
        out.emplace_back("caller", isGiven ? caller->second : Value::undefined("caller"));
        if (isGiven)
            arguments.named.erase(caller);
    }
    const std::size_t taken = std::min(arguments.positional.size(), macro.names.size());
    if (macro.asks.varargs && !isParameter("varargs")) {
        const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken);
        out.emplace_back(
            "varargs", evaluator.makeList(Items(rest, arguments.positional.end()), Kind::Tuple));
        arguments.positional.resize(taken);
    }
    if (!macro.asks.kwargs || isParameter("kwargs"))
        return out;
    // Also a parameter that has its value already: Jinja leaves it there.
    const auto isBound = [&](const auto& one) {
        const auto found = std::find(
            macro.names.begin() + static_cast<std::ptrdiff_t>(taken), macro.names.end(), one.first);
        return found != macro.names.end();
    };
    const auto rest =
        std::stable_partition(arguments.named.begin(), arguments.named.end(), isBound);
    Pairs pairs;
    for (auto one = rest; one != arguments.named.end(); ++one)
        pairs.emplace_back(Value::string(one->first), one->second);
    arguments.named.erase(rest, arguments.named.end());
    out.emplace_back("kwargs", evaluator.makeDict(std::move(pairs)));
    return out;
}

} // namespace

Value Evaluator::callMacro(const Macro& macro, Arguments arguments)
{
    const Node& node = *macro.node;
    std::string parameters;
    for (const std::string& name : node.names)
        parameters += name + " ";
    auto unbound = takeUnbound(*this, node, arguments);
    const std::vector<const Value*> given = bind(node.text, parameters, arguments);
    if (failed())
        return {};
    Scope* const outer = m_scope;
    m_scope = macro.scope;
    m_scope = push();
    m_scope->names = std::move(unbound);
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
        fail(fmt::format("{} takes at most {} arguments, not {}", shownName(callee), names.size(),
            arguments.positional.size()));
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
