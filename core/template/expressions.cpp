#include "core/template/expressions.h"

#include "core/template/evaluator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace mr::tpl {

Token ExpressionParser::take()
{
    const Token& token = peek();
    m_at = std::min(m_at + 1, m_tokens.size() - 1);
    return token;
}

bool ExpressionParser::skip(Type type, std::string_view text)
{
    if (!m_status.ok() || !peek().is(type, text))
        return false;
    take();
    return true;
}

void ExpressionParser::expectSign(std::string_view text)
{
    if (m_status.ok() && !skipSign(text))
        fail("\"" + std::string(text) + "\" is missing before \"" + peek().text + "\"");
}

std::string ExpressionParser::takeName(const char* what)
{
    if (m_status.ok() && peek().type != Type::Name)
        fail(std::string("the name of ") + what + " is missing");
    return m_status.ok() ? take().text : std::string();
}

NodePtr ExpressionParser::fail(const std::string& message)
{
    if (m_status.ok())
        m_status = templateError(peek().line, message);
    return nullptr;
}

NodePtr ExpressionParser::make(Op op, int line)
{
    auto node = std::make_unique<Node>();
    node->op = op;
    node->line = line;
    return node;
}

void ExpressionParser::add(Node& parent, NodePtr child)
{
    if (child != nullptr)
        parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kMaxDepth)
        fail("nested too deeply");
    parent.children.push_back(std::move(child));
}

NodePtr ExpressionParser::constant(Value value, int line)
{
    NodePtr node = make(Op::Constant, line);
    node->value = std::move(value);
    return node;
}

// Nested brackets come back here, so this is where the stack is guarded.
NodePtr ExpressionParser::expression()
{
    if (++m_open > kMaxDepth)
        fail("nested too deeply");
    if (!m_status.ok())
        return nullptr;
    NodePtr node = either();
    while (m_status.ok() && peek().is(Type::Name, "if")) {
        const int line = take().line;
        NodePtr condition = either();
        NodePtr otherwise = skipName("else") ? expression() : nullptr;
        node = make(Op::Choice, line, std::move(condition), std::move(node), std::move(otherwise));
    }
    --m_open;
    return node;
}

NodePtr ExpressionParser::tuple(bool withChoice)
{
    const int line = peek().line;
    NodePtr first = withChoice ? expression() : either();
    if (!peek().is(Type::Sign, ","))
        return first;
    NodePtr node = make(Op::Tuple, line, std::move(first));
    while (skipSign(",")) {
        const Token& next = peek();
        const bool ends = next.type == Type::TagEnd || next.type == Type::PrintEnd ||
                          next.is(Type::Sign, ")") || next.is(Type::Sign, "=") ||
                          next.is(Type::Name, "in");
        if (ends)
            break;
        add(*node, withChoice ? expression() : either());
    }
    return node;
}

NodePtr ExpressionParser::target()
{
    if (peek().type != Type::Name || !peek(1).is(Type::Sign, "."))
        return targets();
    NodePtr attribute = make(Op::Attribute, peek().line, oneTarget());
    skipSign(".");
    attribute->text = takeName("an attribute");
    return attribute;
}

// a, (b, c)
NodePtr ExpressionParser::targets()
{
    const int line = peek().line;
    NodePtr first = oneTarget();
    if (!peek().is(Type::Sign, ","))
        return first;
    NodePtr list = make(Op::Tuple, line, std::move(first));
    while (skipSign(",")) {
        if (peek().is(Type::Sign, ")"))
            break;
        add(*list, oneTarget());
    }
    return list;
}

NodePtr ExpressionParser::oneTarget()
{
    if (++m_open > kMaxDepth)
        return fail("nested too deeply");
    NodePtr node;
    if (skipSign("(")) {
        node = targets();
        expectSign(")");
    } else {
        node = make(Op::Name, peek().line);
        node->text = takeName("a variable");
    }
    --m_open;
    return node;
}

NodePtr ExpressionParser::either()
{
    NodePtr node = both();
    while (m_status.ok() && peek().is(Type::Name, "or")) {
        const int line = take().line;
        NodePtr right = both();
        node = make(Op::Or, line, std::move(node), std::move(right));
    }
    return node;
}

NodePtr ExpressionParser::both()
{
    NodePtr node = negation();
    while (m_status.ok() && peek().is(Type::Name, "and")) {
        const int line = take().line;
        NodePtr right = negation();
        node = make(Op::And, line, std::move(node), std::move(right));
    }
    return node;
}

NodePtr ExpressionParser::negation()
{
    std::vector<int> lines;
    while (peek().is(Type::Name, "not") && m_status.ok())
        lines.push_back(take().line);
    NodePtr node = comparison();
    for (; !lines.empty() && m_status.ok(); lines.pop_back())
        node = make(Op::Not, lines.back(), std::move(node));
    return node;
}

NodePtr ExpressionParser::comparison()
{
    static constexpr std::array<std::string_view, 6> kSigns{"==", "!=", "<=", ">=", "<", ">"};
    const int line = peek().line;
    NodePtr node = make(Op::Compare, line, sum());
    while (m_status.ok()) {
        const bool sign = peek().type == Type::Sign &&
                          std::find(kSigns.begin(), kSigns.end(), peek().text) != kSigns.end();
        const bool notIn = peek().is(Type::Name, "not") && peek(1).is(Type::Name, "in");
        if (!sign && !notIn && !peek().is(Type::Name, "in"))
            break;
        std::string op = take().text;
        if (notIn)
            op += " " + take().text;
        node->names.push_back(op);
        add(*node, sum());
    }
    if (node->names.empty())
        return std::move(node->children.front());
    return node;
}

NodePtr ExpressionParser::arithmetic(
    NodePtr (ExpressionParser::*next)(), std::initializer_list<std::string_view> signs)
{
    NodePtr node = (this->*next)();
    while (m_status.ok() && peek().type == Type::Sign &&
           std::find(signs.begin(), signs.end(), peek().text) != signs.end()) {
        const Token sign = take();
        NodePtr right = (this->*next)();
        node = make(Op::Arithmetic, sign.line, std::move(node), std::move(right));
        node->text = sign.text;
    }
    return node;
}

NodePtr ExpressionParser::sum()
{
    return arithmetic(&ExpressionParser::concatenation, {"+", "-"});
}

NodePtr ExpressionParser::concatenation()
{
    const int line = peek().line;
    NodePtr first = product();
    if (!peek().is(Type::Sign, "~"))
        return first;
    NodePtr node = make(Op::Concat, line, std::move(first));
    while (skipSign("~"))
        add(*node, product());
    return node;
}

NodePtr ExpressionParser::product()
{
    return arithmetic(&ExpressionParser::power, {"*", "/", "//", "%"});
}

NodePtr ExpressionParser::power()
{
    NodePtr node = unary(true);
    while (m_status.ok() && peek().is(Type::Sign, "**")) {
        const int line = take().line;
        NodePtr right = unary(true);
        node = make(Op::Arithmetic, line, std::move(node), std::move(right));
        node->text = "**";
    }
    return node;
}

NodePtr ExpressionParser::unary(bool withFilter)
{
    const int line = peek().line;
    if (++m_open > kMaxDepth)
        fail("nested too deeply");
    NodePtr node;
    if (skipSign("-"))
        node = make(Op::Negate, line, unary(false));
    else if (skipSign("+"))
        node = make(Op::Plus, line, unary(false));
    else
        node = primary();
    node = postfix(std::move(node));
    if (withFilter)
        node = suffixes(std::move(node));
    --m_open;
    return node;
}

} // namespace mr::tpl
