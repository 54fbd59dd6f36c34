// The operands of expressions: names, numbers, lists, with their calls and subscripts.

#include "core/base/shown_text.h"
#include "core/template/evaluator.h"
#include "core/template/expressions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace mr::tpl {

NodePtr ExpressionParser::primary()
{
    if (!m_status.ok())
        return nullptr;
    const Token& token = peek();
    const int line = token.line;
    if (token.type == Type::Name)
        return nameOrConstant();
    if (token.type == Type::Number)
        return number();
    if (token.type == Type::String) {
        std::string text;
        while (peek().type == Type::String)
            text += take().text;
        return constant(Value::string(text), line);
    }
    if (skipSign("(")) {
        if (skipSign(")"))
            return make(Op::Tuple, line);
        NodePtr node = tuple();
        expectSign(")");
        return node;
    }
    if (skipSign("["))
        return listOf();
    if (skipSign("{"))
        return dictOf();
    return fail(token.text.empty() ? "an expression is missing"
                                   : shownName(token.text) + " is not an expression");
}

NodePtr ExpressionParser::nameOrConstant()
{
    const Token token = take();
    if (token.text == "true" || token.text == "True")
        return constant(Value::boolean(true), token.line);
    if (token.text == "false" || token.text == "False")
        return constant(Value::boolean(false), token.line);
    if (token.text == "none" || token.text == "None")
        return constant(Value::none(), token.line);
    NodePtr node = make(Op::Name, token.line);
    node->text = token.text;
    return node;
}

NodePtr ExpressionParser::number()
{
    const Token token = take();
    const std::string& text = token.text;
    const char* const end = text.data() + text.size();
    const bool prefixed =
        text.size() > 2 && text[0] == '0' && text[1] > '9' && text[1] != 'e' && text[1] != 'E';
    if (!prefixed && text.find_first_of(".eE") != std::string::npos) {
        double real = 0;
        std::from_chars(text.data(), end, real);
        return constant(Value::real(real), token.line);
    }
    const char kind = prefixed ? static_cast<char>(text[1] | 0x20) : 'd';
    const int base = kind == 'x' ? 16 : kind == 'b' ? 2 : kind == 'o' ? 8 : 10;
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data() + (prefixed ? 2 : 0), end, value, base);
    if (read.ec != std::errc() || read.ptr != end)
        return fail("the number " + text + " is not one of 64 bits");
    return constant(Value::integer(value), token.line);
}

NodePtr ExpressionParser::listOf()
{
    NodePtr node = make(Op::List, peek().line);
    while (m_status.ok() && !skipSign("]")) {
        add(*node, expression());
        if (!peek().is(Type::Sign, "]"))
            expectSign(",");
    }
    return node;
}

NodePtr ExpressionParser::dictOf()
{
    NodePtr node = make(Op::Dict, peek().line);
    while (m_status.ok() && !skipSign("}")) {
        add(*node, expression());
        expectSign(":");
        add(*node, expression());
        if (!peek().is(Type::Sign, "}"))
            expectSign(",");
    }
    return node;
}

NodePtr ExpressionParser::postfix(NodePtr node)
{
    while (m_status.ok()) {
        const int line = peek().line;
        if (peek().is(Type::Sign, "(")) {
            node = make(Op::Call, line, std::move(node));
            arguments(*node);
        } else if (skipSign("[")) {
            node = subscript(std::move(node));
        } else if (skipSign(".")) {
            if (peek().type == Type::Number) {
                node = make(Op::Subscript, line, std::move(node), number());
                continue;
            }
            node = make(Op::Attribute, line, std::move(node));
            node->text = takeName("an attribute");
        } else {
            break;
        }
    }
    return node;
}

NodePtr ExpressionParser::subscript(NodePtr node)
{
    const int line = peek().line;
    NodePtr at = index();
    expectSign("]");
    return make(Op::Subscript, line, std::move(node), std::move(at));
}

NodePtr ExpressionParser::index()
{
    const int line = peek().line;
    const auto ends = [this] { return peek().is(Type::Sign, "]") || peek().is(Type::Sign, ":"); };
    NodePtr begin = ends() ? nullptr : expression();
    if (!skipSign(":"))
        return begin != nullptr ? std::move(begin) : fail("an index is missing");
    NodePtr end = ends() ? nullptr : expression();
    NodePtr step = skipSign(":") && !ends() ? expression() : nullptr;
    return make(Op::Slice, line, std::move(begin), std::move(end), std::move(step));
}

NodePtr ExpressionParser::suffixes(NodePtr node)
{
    while (m_status.ok()) {
        if (peek().is(Type::Sign, "|"))
            node = filter(std::move(node));
        else if (peek().is(Type::Name, "is"))
            node = test(std::move(node));
        else if (peek().is(Type::Sign, "(")) // calls and subscripts of a filter's result
            node = postfix(std::move(node));
        else
            break;
    }
    return node;
}

NodePtr ExpressionParser::filters(NodePtr input)
{
    while (m_status.ok() && peek().is(Type::Sign, "|"))
        input = filter(std::move(input));
    return input;
}

NodePtr ExpressionParser::filter(NodePtr input)
{
    expectSign("|");
    NodePtr node = make(Op::Filter, peek().line, std::move(input));
    node->text = takeName("a filter");
    if (m_status.ok() && !isFilter(node->text))
        return fail("the filter " + shownName(node->text) + " is not supported");
    if (peek().is(Type::Sign, "("))
        arguments(*node);
    return node;
}

// Does the next token begin a test's argument without brackets, as in `is divisibleby 3`?
bool ExpressionParser::startsTestArgument() const
{
    const Token& token = peek();
    if (token.type == Type::Name)
        return token.text != "else" && token.text != "or" && token.text != "and" &&
               token.text != "is" && token.text != "if" && token.text != "in" &&
               token.text != "not";
    return token.type == Type::String || token.type == Type::Number || token.is(Type::Sign, "[") ||
           token.is(Type::Sign, "{");
}

NodePtr ExpressionParser::test(NodePtr input)
{
    const int line = take().line; // is
    const bool negated = skipName("not");
    NodePtr node = make(Op::Test, line, std::move(input));
    node->text = takeName("a test");
    if (m_status.ok() && !isTest(node->text))
        return fail("the test " + shownName(node->text) + " is not supported");
    if (peek().is(Type::Sign, "(")) {
        arguments(*node);
    } else if (m_status.ok() && startsTestArgument()) {
        NodePtr argument = primary();
        add(*node, postfix(std::move(argument)));
    }
    return negated ? make(Op::Not, line, std::move(node)) : std::move(node);
}

// As Jinja orders them: values, then names with values and one *, then one **.
void ExpressionParser::arguments(Node& call)
{
    bool hasSpread = false;
    bool hasPairs = false;
    expectSign("(");
    while (m_status.ok() && !skipSign(")")) {
        const int line = peek().line;
        const bool named = peek().type == Type::Name && peek(1).is(Type::Sign, "=");
        const bool spread = skipSign("*");
        const bool pairs = !spread && skipSign("**");
        if (hasPairs || (spread && hasSpread))
            fail("arguments that are spread out with * or ** stand last, one of each");
        else if (!spread && !pairs && !named && (hasSpread || !call.names.empty()))
            fail("an argument without a name follows one with a name");
        hasSpread |= spread;
        hasPairs |= pairs;
        if (named) {
            call.names.push_back(take().text);
            take();
        }
        NodePtr value = expression();
        add(call, spread || pairs
                      ? make(spread ? Op::Spread : Op::SpreadPairs, line, std::move(value))
                      : std::move(value));
        if (!peek().is(Type::Sign, ")"))
            expectSign(",");
    }
}

} // namespace mr::tpl
