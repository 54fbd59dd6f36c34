#include "core/template/evaluator.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr::tpl {

Value* Scope::find(std::string_view name) noexcept
{
    for (auto& [known, value] : names)
        if (known == name)
            return &value;
    return nullptr;
}

void Scope::set(std::string_view name, Value value)
{
    if (Value* known = find(name); known != nullptr)
        *known = std::move(value);
    else
        names.emplace_back(std::string(name), std::move(value));
}

Status Evaluator::render(
    const Node& root, std::vector<std::pair<std::string, Value>> variables, Text& out)
{
    m_scope = push();
    m_scope->names = std::move(variables);
    m_out = &out;
    run(root);
    return m_status;
}

Value Evaluator::fail(const std::string& message)
{
    if (m_status.ok())
        m_status = templateError(m_line, message);
    return {};
}

bool Evaluator::spend(std::size_t work)
{
    if (work < static_cast<std::size_t>(m_limits.work))
        m_work -= static_cast<std::int64_t>(work);
    else
        m_work = -1;
    if (m_work < 0)
        fail("the template works for too long or makes too much; is there a loop without an end?");
    return !failed();
}

Value Evaluator::checked(Value value)
{
    if (value.nesting() > Value::kMaxNesting)
        return fail("values nest too deeply");
    return value.weight() > Value::kMaxWeight ? fail("a value is too large") : value;
}

Value Evaluator::makeString(Text text)
{
    return spend(1 + text.byteCount() / 8) ? Value::string(std::move(text)) : Value();
}

Value Evaluator::makeLike(const Value& model, Text text)
{
    if (!model.isMarkup())
        return makeString(std::move(text));
    return spend(1 + text.byteCount() / 8) ? Value::markup(std::move(text)) : Value();
}

Value Evaluator::makeList(Items items, Kind kind)
{
    return spend(1 + 4 * items.size()) ? checked(Value::list(std::move(items), kind)) : Value();
}

Value Evaluator::makeDict(Pairs pairs)
{
    return spend(1 + 8 * pairs.size()) ? checked(Value::dict(std::move(pairs))) : Value();
}

Scope* Evaluator::push()
{
    spend(8);
    m_scopes.push_back({m_scope, {}});
    return &m_scopes.back();
}

void Evaluator::write(const Text& text)
{
    if (!spend(text.byteCount() / 8))
        return;
    m_out->append(text, m_generation > 0 ? std::uint8_t{kTrained} : std::uint8_t{0});
    if (m_out->byteCount() > m_limits.outputBytes)
        fail(fmt::format("the template writes more than {} bytes", m_limits.outputBytes));
}

Evaluator::Flow Evaluator::run(const Node& node)
{
    if (failed() || !spend(1))
        return Flow::Next;
    m_line = node.line;
    switch (node.op) {
    case Op::Block:
        return runBlock(node);
    case Op::Literal:
        write(node.value.text());
        return Flow::Next;
    case Op::Write: {
        const Value value = eval(*node.children[0]);
        if (value.is(Kind::Lazy) || value.kind() >= Kind::Namespace)
            fail(std::string("a ") + value.typeName() + " cannot be written");
        if (spend(value.weight()))
            write(asText(value));
        return Flow::Next;
    }
    case Op::If:
        return runIf(node);
    case Op::For:
        return runFor(node);
    case Op::Set:
        assign(*node.children[0], eval(*node.children[1]));
        return Flow::Next;
    case Op::With:
        return runWith(node);
    case Op::Macro:
        m_macros.push_back({&node, m_scope});
        m_scope->set(node.text, Value::macro(&m_macros.back()));
        return Flow::Next;
    case Op::CallBlock:
        return runCall(node);
    case Op::Generation:
        return runGeneration(node);
    case Op::Break:
        return Flow::Break;
    case Op::Continue:
        return Flow::Continue;
    default:
        return runCapture(node);
    }
}

Evaluator::Flow Evaluator::runBlock(const Node& node)
{
    if (++m_depth > m_limits.depth)
        fail("nested too deeply");
    Flow flow = Flow::Next;
    for (std::size_t i = 0; i < node.children.size() && flow == Flow::Next && !failed(); ++i)
        flow = run(*node.children[i]);
    --m_depth;
    return flow;
}

Evaluator::Flow Evaluator::runIf(const Node& node)
{
    const std::size_t last = node.children.size() - 1;
    for (std::size_t i = 0; i < last; i += 2) {
        if (eval(*node.children[i]).truth())
            return run(*node.children[i + 1]);
        if (failed())
            return Flow::Next;
    }
    return node.children[last] != nullptr ? run(*node.children[last]) : Flow::Next;
}

// The items for which the condition of a loop holds.
Items Evaluator::keep(const Items& items, const Node& node)
{
    Items out;
    Scope* const outer = m_scope;
    m_scope = push();
    for (const Value& item : items) {
        assign(*node.children[0], item);
        if (failed())
            break;
        if (eval(*node.children[2]).truth())
            out.push_back(item);
    }
    m_scope = outer;
    return out;
}

Evaluator::Flow Evaluator::runFor(const Node& node)
{
    const Value iterable = eval(*node.children[1]);
    return failed() ? Flow::Next : runLoop(node, iterable, 0);
}

Evaluator::Flow Evaluator::runLoop(const Node& node, const Value& iterable, int depth)
{
    Items items = iterate(iterable);
    if (node.children[2] != nullptr)
        items = keep(items, node);
    if (!spend(4 * items.size()) || failed())
        return Flow::Next;
    Scope* const outer = m_scope;
    if (items.empty()) {
        m_scope = push();
        const Flow flow = node.children[4] != nullptr ? run(*node.children[4]) : Flow::Next;
        m_scope = outer;
        return flow;
    }
    m_loops.push_back({});
    Loop& loop = m_loops.back();
    loop.node = &node;
    loop.scope = outer;
    loop.depth = depth;
    loop.items = std::move(items);
    m_scope = push();
    for (loop.index = 0; loop.index < loop.items.size() && !failed(); ++loop.index) {
        m_scope->names.clear();
        m_scope->set("loop", Value::loop(&loop));
        assign(*node.children[0], loop.items[loop.index]);
        if (run(*node.children[3]) == Flow::Break)
            break;
    }
    m_scope = outer;
    return Flow::Next;
}

// The text between the tags is a macro named "caller" for the one that is called.
Evaluator::Flow Evaluator::runCall(const Node& node)
{
    const Node& called = *node.children[0];
    const Value callee = eval(*called.children[0]);
    Arguments arguments = evalArguments(called);
    if (failed())
        return Flow::Next;
    m_line = node.line;
    if (!callee.is(Kind::Macro)) {
        fail(std::string("the tag \"call\" needs a macro, not a ") + callee.typeName());
        return Flow::Next;
    }
    spend(8);
    m_macros.push_back({node.children[1].get(), m_scope});
    arguments.named.emplace_back("caller", Value::macro(&m_macros.back()));
    const Value written = call(callee, arguments);
    if (!failed())
        write(written.text());
    return Flow::Next;
}

Evaluator::Flow Evaluator::runWith(const Node& node)
{
    Scope* const outer = m_scope;
    Scope* const inner = push();
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
        Value value = eval(*node.children[i + 1]);
        m_scope = inner;
        assign(*node.children[i], std::move(value));
        m_scope = outer;
    }
    m_scope = inner;
    const Flow flow = run(*node.children.back());
    m_scope = outer;
    return flow;
}

Evaluator::Flow Evaluator::runGeneration(const Node& node)
{
    Scope* const outer = m_scope;
    m_scope = push();
    ++m_generation;
    const Flow flow = run(*node.children[0]);
    --m_generation;
    m_scope = outer;
    return flow;
}

Text Evaluator::capture(const Node& body)
{
    Text out;
    Text* const outer = std::exchange(m_out, &out);
    Scope* const scope = m_scope;
    m_scope = push();
    run(body);
    m_scope = scope;
    m_out = outer;
    return out;
}

Evaluator::Flow Evaluator::runCapture(const Node& node)
{
    const bool set = node.op == Op::SetBlock;
    Value value = makeString(capture(*node.children[1]));
    const Node* const filters = node.children[set ? 2 : 0].get();
    if (filters != nullptr) {
        Value outer = std::exchange(m_captured, value);
        value = eval(*filters);
        m_captured = std::move(outer);
    }
    if (set)
        assign(*node.children[0], std::move(value));
    else
        write(asText(value));
    return Flow::Next;
}

void Evaluator::assign(const Node& target, Value value)
{
    if (failed())
        return;
    if (target.op == Op::Name)
        return m_scope->set(target.text, std::move(value));
    if (target.op == Op::Attribute) {
        const Value space = eval(*target.children[0]);
        if (!space.is(Kind::Namespace))
            fail("only attributes of a namespace() can be set, not of a " +
                 std::string(space.typeName()));
        else
            space.scope()->set(target.text, std::move(value));
        return;
    }
    const Items items = iterate(value);
    if (!failed() && items.size() != target.children.size())
        fail(fmt::format(
            "{} variables are to be set from {} values", target.children.size(), items.size()));
    for (std::size_t i = 0; i < target.children.size() && !failed(); ++i)
        assign(*target.children[i], items[i]);
}

Items Evaluator::iterate(const Value& value)
{
    switch (value.kind()) {
    case Kind::Undefined:
        return {};
    case Kind::List:
    case Kind::Tuple:
        return spend(value.items().size()) ? value.items() : Items();
    case Kind::Lazy: {
        LazyItems& lazy = value.lazyItems();
        const auto begin = lazy.items.begin() + static_cast<std::ptrdiff_t>(lazy.next);
        lazy.next = lazy.items.size();
        return spend(lazy.items.size()) ? Items(begin, lazy.items.end()) : Items();
    }
    case Kind::Dict: {
        Items keys;
        if (spend(value.pairs().size()))
            for (const auto& [key, item] : value.pairs())
                keys.push_back(key);
        return keys;
    }
    case Kind::String: {
        Items out;
        if (!spend(4 * value.text().byteCount()))
            return out;
        const std::vector<std::size_t> at = value.text().characters();
        for (std::size_t i = 0; i + 1 < at.size(); ++i)
            out.push_back(Value::string(value.text().slice(at[i], at[i + 1])));
        return out;
    }
    default:
        fail(std::string("a value of type ") + value.typeName() + " cannot be iterated");
        return {};
    }
}

} // namespace mr::tpl
