// The tests of chat templates: `is defined`, `is string`, ...

#include "core/base/shown_text.h"
#include "core/template/evaluator.h"

#include <algorithm>
#include <array>

namespace mr::tpl {
namespace {

using Ask = bool (*)(const Value&);

bool isLen(const Value& v)
{
    return v.isSequence() || v.is(Kind::String) || v.is(Kind::Dict) || v.is(Kind::Undefined);
}

bool allCased(const Value& v, Letters how, Letters other)
{
    const Text text = asText(v);
    return changeCase(text, how).bytes() == text.bytes() &&
           changeCase(text, other).bytes() != text.bytes();
}

struct TestEntry {
    std::string_view name;
    Ask ask;
};

constexpr std::array<TestEntry, 19> kPlain{{
    {"defined", [](const Value& v) { return !v.is(Kind::Undefined); }},
    {"undefined", [](const Value& v) { return v.is(Kind::Undefined); }},
    {"none", [](const Value& v) { return v.is(Kind::None); }},
    {"string", [](const Value& v) { return v.is(Kind::String); }},
    {"mapping", [](const Value& v) { return v.is(Kind::Dict); }},
    {"iterable", [](const Value& v) { return isLen(v) || v.is(Kind::Lazy) || v.is(Kind::Loop); }},
    {"sequence", [](const Value& v) { return isLen(v); }},
    {"number", [](const Value& v) { return v.isNumber(); }},
    {"integer", [](const Value& v) { return v.is(Kind::Int); }},
    {"float", [](const Value& v) { return v.is(Kind::Float); }},
    {"boolean", [](const Value& v) { return v.is(Kind::Bool); }},
    {"true", [](const Value& v) { return v.is(Kind::Bool) && v.asBool(); }},
    {"false", [](const Value& v) { return v.is(Kind::Bool) && !v.asBool(); }},
    {"callable", [](const Value& v) { return v.kind() >= Kind::Macro || v.is(Kind::Undefined); }},
    {"escaped", [](const Value& v) { return v.isMarkup(); }},
    {"lower", [](const Value& v) { return allCased(v, Letters::Lower, Letters::Upper); }},
    {"upper", [](const Value& v) { return allCased(v, Letters::Upper, Letters::Lower); }},
    {"filter", [](const Value& v) { return v.is(Kind::String) && isFilter(v.text().bytes()); }},
    {"test", [](const Value& v) { return v.is(Kind::String) && isTest(v.text().bytes()); }},
}};

struct Alias {
    std::string_view name;
    std::string_view op;
};

constexpr std::array<Alias, 18> kComparisons{{{"eq", "=="}, {"==", "=="}, {"equalto", "=="},
    {"ne", "!="}, {"!=", "!="}, {"lt", "<"}, {"<", "<"}, {"lessthan", "<"}, {"le", "<="},
    {"<=", "<="}, {"gt", ">"}, {">", ">"}, {"greaterthan", ">"}, {"ge", ">="}, {">=", ">="},
    {"in", "in"}, {"sameas", "sameas"}, {"divisibleby", "%"}}};

const TestEntry* plain(std::string_view name)
{
    const auto found = std::find_if(
        kPlain.begin(), kPlain.end(), [name](const TestEntry& e) { return e.name == name; });
    return found == kPlain.end() ? nullptr : &*found;
}

const Alias* comparison(std::string_view name)
{
    const auto found = std::find_if(kComparisons.begin(), kComparisons.end(),
        [name](const Alias& e) { return e.name == name; });
    return found == kComparisons.end() ? nullptr : &*found;
}

} // namespace

bool isTest(std::string_view name) noexcept
{
    return name == "even" || name == "odd" || plain(name) != nullptr || comparison(name) != nullptr;
}

Value Evaluator::test(const std::string& name, const Value& input, const Arguments& arguments)
{
    if (const TestEntry* found = plain(name); found != nullptr) {
        bind(name, "", arguments);
        return failed() || !spend(input.weight()) ? Value() : Value::boolean(found->ask(input));
    }
    if (name == "odd" || name == "even") {
        const Value rest = arithmetic("%", input, Value::integer(2));
        return failed() ? Value() : Value::boolean(rest.truth() == (name == "odd"));
    }
    const Alias* const found = comparison(name);
    if (found == nullptr)
        return fail("the test " + shownName(name) + " is not supported");
    const auto given = bind(name, "other", arguments);
    if (failed() || given[0] == nullptr)
        return fail("the test " + shownName(name) + " takes one argument");
    if (found->op == "%") {
        const Value rest = arithmetic("%", input, *given[0]);
        return failed() ? Value() : Value::boolean(!rest.truth());
    }
    if (found->op == "sameas")
        return Value::boolean(input.kind() == given[0]->kind() && equal(input, *given[0]));
    return compared(std::string(found->op), input, *given[0]);
}

} // namespace mr::tpl
