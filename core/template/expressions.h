// The expressions of a chat template, parsed with Jinja's precedence.
//
// Threads  Confined to one parse.
// Errors   The first one is kept in status(); after it every function returns null.

#pragma once

#include "core/template/syntax.h"

#include <algorithm>
#include <initializer_list>

namespace mr::tpl {

class ExpressionParser
{
public:
    static constexpr int kMaxDepth = 150; // depth of the tree

    explicit ExpressionParser(std::vector<Token> tokens)
        : m_tokens(std::move(tokens))
    {
    }

    const Status& status() const noexcept { return m_status; }

protected:
    using Type = Token::Type;

    NodePtr expression();
    // One expression, or several with commas between them as a tuple.
    NodePtr tuple(bool withChoice = true);
    NodePtr filters(NodePtr input); // | a | b(c)
    NodePtr target();               // target of set and for
    void arguments(Node& call);     // (a, b=c), appended

    const Token& peek(std::size_t ahead = 0) const
    {
        return m_tokens[std::min(m_at + ahead, m_tokens.size() - 1)];
    }
    Token take();
    bool skip(Type type, std::string_view text);
    bool skipSign(std::string_view text) { return skip(Type::Sign, text); }
    bool skipName(std::string_view text) { return skip(Type::Name, text); }
    void expectSign(std::string_view text);
    std::string takeName(const char* what);
    NodePtr fail(const std::string& message);

    NodePtr make(Op op, int line);
    template <typename... Children>
    NodePtr make(Op op, int line, NodePtr first, Children... others)
    {
        NodePtr node = make(op, line);
        add(*node, std::move(first));
        (add(*node, std::move(others)), ...);
        return node;
    }
    void add(Node& parent, NodePtr child);

private:
    NodePtr targets();
    NodePtr oneTarget();
    NodePtr either();
    NodePtr both();
    NodePtr negation();
    NodePtr comparison();
    NodePtr sum();
    NodePtr concatenation();
    NodePtr product();
    NodePtr power();
    NodePtr unary(bool withFilter);
    NodePtr primary();
    NodePtr constant(Value value, int line);
    NodePtr nameOrConstant();
    NodePtr number();
    NodePtr listOf();
    NodePtr dictOf();
    NodePtr postfix(NodePtr node);
    NodePtr subscript(NodePtr node);
    NodePtr index();
    NodePtr suffixes(NodePtr node); // filters, tests and calls
    NodePtr filter(NodePtr input);
    NodePtr test(NodePtr input);

    NodePtr arithmetic(
        NodePtr (ExpressionParser::*next)(), std::initializer_list<std::string_view> signs);
    bool startsTestArgument() const;

    std::vector<Token> m_tokens;
    std::size_t m_at = 0;
    int m_open = 0; // functions on the stack that may come back to themselves
    Status m_status;
};

} // namespace mr::tpl
