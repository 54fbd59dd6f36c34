// Runs a parsed chat template: one rendering, with limits on its work, output and depth.
//
// A template comes with a model from anywhere, so it is treated as hostile: it reaches nothing but
// the values it is given, changes none of them, and ends with an error when it works for too long,
// writes too much or calls too deeply.
//
// Threads    Confined to one rendering.
// Ownership  Borrows the tree and the variables; owns scopes, loops and macros until it goes.
// Errors     InvalidArgument with the line of the template. The first one is kept, and every
//            function returns at once after it: no exception is thrown or needed.

#pragma once

#include "core/template/syntax.h"

#include <ctime>
#include <deque>
#include <utility>

namespace mr::tpl {

struct Limits {
    std::size_t outputBytes = std::size_t{64} << 20;
    std::int64_t work = 40'000'000; // one per node, plus one per eight bytes or quarter item made
    int depth = 500;                // expressions, blocks and macros together
};

struct Scope {
    Scope* parent = nullptr;
    std::vector<std::pair<std::string, Value>> names;

    Value* find(std::string_view name) noexcept;
    void set(std::string_view name, Value value);
};

struct Macro {
    const Node* node = nullptr;
    Scope* scope = nullptr; // where it was defined
};

struct Loop {
    const Node* node = nullptr;
    Scope* scope = nullptr; // around the loop
    int depth = 0;          // nesting of loop(...) within loop(...)
    Items items;
    std::size_t index = 0;
    Items changed; // last arguments of changed()
    bool hasChanged = false;
};

struct Arguments {
    Items positional;
    std::vector<std::pair<std::string, Value>> named;
};

class Evaluator
{
public:
    Evaluator(const Limits& limits, const std::tm& now)
        : m_limits(limits)
        , m_now(now)
        , m_work(limits.work)
    {
    }

    Status render(
        const Node& root, std::vector<std::pair<std::string, Value>> variables, Text& out);

    // For filters, tests and methods.
    bool failed() const noexcept { return !m_status.ok(); }
    Value fail(const std::string& message);
    bool spend(std::size_t work); // false when it is used up
    Value makeString(Text text);
    Value makeLike(const Value& model, Text text); // markup if `model` is
    Value makeList(Items items, Kind kind = Kind::List);
    Value makeDict(Pairs pairs);
    Items iterate(const Value& value);
    Value attribute(const Value& object, const std::string& name);
    Value item(const Value& object, const Value& key);
    bool contains(const Value& container, const Value& wanted);
    Value filter(const std::string& name, const Value& input, const Arguments& arguments);
    Value test(const std::string& name, const Value& input, const Arguments& arguments);
    // Arguments in the order of `parameters` (names with spaces between them); null where absent.
    std::vector<const Value*> bind(
        std::string_view callee, std::string_view parameters, const Arguments& arguments);
    // Nesting of a value that is about to be made; see Value::kMaxNesting.
    Value checked(Value value);

private:
    enum class Flow : std::uint8_t { Next, Break, Continue };

    Flow run(const Node& node);
    Flow runBlock(const Node& node);
    Flow runIf(const Node& node);
    Flow runFor(const Node& node);
    Flow runLoop(const Node& node, const Value& iterable, int depth);
    Flow runCall(const Node& node);
    Flow runWith(const Node& node);
    Flow runCapture(const Node& node); // SetBlock, FilterBlock
    Flow runGeneration(const Node& node);
    Text capture(const Node& body);
    void write(const Text& text);
    void assign(const Node& target, Value value);
    Scope* push();

    Value eval(const Node& node);
    Value evalOp(const Node& node);
    Value evalName(const Node& node);
    Value evalList(const Node& node);
    Value evalDict(const Node& node);
    Value evalSubscript(const Node& node);
    Value evalConcat(const Node& node);
    Value evalCompare(const Node& node);
    Value evalCall(const Node& node);
    Value evalChoice(const Node& node);
    Arguments evalArguments(const Node& node);
    Items keep(const Items& items, const Node& node);
    Value arithmetic(const std::string& op, const Value& a, const Value& b);
    Value integers(const std::string& op, std::int64_t a, std::int64_t b);
    Value reals(const std::string& op, double a, double b);
    Value repeated(const Value& value, std::int64_t count);
    Value joined(const Value& a, const Value& b);
    Value slice(const Value& object, const Value& begin, const Value& end, const Value& step);
    Value compared(const std::string& op, const Value& a, const Value& b);
    Value call(const Value& callee, const Arguments& arguments);
    Value callMacro(const Macro& macro, Arguments arguments);
    Value callFunction(const std::string& name, const Arguments& arguments);
    Value callMethod(const BoundMethod& method, const Arguments& arguments);
    Value loopAttribute(Loop& loop, const std::string& name);
    Value loopCall(Loop& loop, const std::string& name, const Arguments& arguments);
    Value loopAgain(const Loop& loop, const Arguments& arguments);
    bool addSpread(const Node& spread, Arguments& out);
    Value makeRange(const Arguments& arguments);
    Value makeSpace(const Arguments& arguments);
    Value date(const Arguments& arguments);

    const Limits& m_limits;
    const std::tm& m_now;
    std::int64_t m_work;
    int m_depth = 0;
    int m_line = 0;
    int m_generation = 0;
    Text* m_out = nullptr;
    Scope* m_scope = nullptr;
    Value m_captured;
    std::deque<Scope> m_scopes;
    std::deque<Macro> m_macros;
    std::deque<Loop> m_loops;
    Status m_status;
};

bool isFilter(std::string_view name) noexcept;
bool isTest(std::string_view name) noexcept;
bool isFunction(std::string_view name) noexcept;
// Has a value of `kind` that method? `known` is false for methods of Python that are not here.
bool isMethod(Kind kind, std::string_view name, bool& known) noexcept;
Value runMethod(Evaluator& evaluator, const BoundMethod& method, const Arguments& arguments);

// Texts, changed character by character so that each keeps where it came from.
enum class Letters : std::uint8_t { Upper, Lower, Title, Capital, WordTitle };
Text changeCase(const Text& text, Letters how);
Text replaced(const Text& text, const std::string& what, const Text& with, std::int64_t most);
std::vector<Text> lines(const Text& text, bool keepEnds);
Text join(const std::vector<Text>& parts, const Text& between);
// Writes the characters that HTML reads otherwise as its words: "<" as "&lt;".
Text escaped(const Text& text);
Text escapedText(const Value& value); // str(value), escaped unless it is markup

} // namespace mr::tpl
