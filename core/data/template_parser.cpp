// The statements of a chat template.

#include "core/base/shown_text.h"
#include "core/data/template_evaluator.h"
#include "core/data/template_expressions.h"

#include <algorithm>

namespace mr::tpl {
namespace {

class Parser : public ExpressionParser
{
public:
    using ExpressionParser::ExpressionParser;

    Result<NodePtr> run()
    {
        NodePtr root = block({});
        if (!status().ok())
            return status();
        return root;
    }

private:
    using Names = std::initializer_list<std::string_view>;

    // Statements up to a tag that begins with one of `ends`, whose name is left to be read; without
    // any, to the end of the template.
    NodePtr block(Names ends)
    {
        NodePtr node = make(Op::Block, peek().line);
        m_depth += 1;
        if (m_depth > kMaxDepth)
            fail("nested too deeply");
        while (status().ok() && peek().type != Type::End) {
            const Token& token = peek();
            if (token.type == Type::TagBegin && isEnd(peek(1), ends)) {
                take();
                break;
            }
            add(*node, statement());
        }
        if (ends.size() > 0 && peek().type == Type::End)
            fail(shownName(*(ends.end() - 1)) + " is missing at the end of the template");
        m_depth -= 1;
        return node;
    }

    static bool isEnd(const Token& token, Names ends)
    {
        return token.type == Type::Name &&
               std::find(ends.begin(), ends.end(), token.text) != ends.end();
    }

    // Behind the body: the name of its end tag, which `block` has seen, and the end of the tag.
    void close()
    {
        if (status().ok())
            take();
        endTag();
    }

    void endTag()
    {
        if (status().ok() && peek().type != Type::TagEnd)
            fail(shownName(peek().text) + " is not expected here");
        if (status().ok())
            take();
    }

    NodePtr statement()
    {
        const Token token = take();
        if (token.type == Type::Text) {
            NodePtr node = make(Op::Literal, token.line);
            node->value = Value::string(token.text);
            return node;
        }
        if (token.type == Type::PrintBegin) {
            NodePtr node = make(Op::Write, token.line, tuple());
            if (status().ok() && take().type != Type::PrintEnd)
                return fail("\"}}\" is missing");
            return node;
        }
        return tag();
    }

    NodePtr tag()
    {
        const Token name = take();
        const int line = name.line;
        if (name.text == "if")
            return choice(line);
        if (name.text == "for")
            return loop(line);
        if (name.text == "set")
            return assignment(line);
        if (name.text == "macro")
            return macro(line);
        if (name.text == "with")
            return with(line);
        if (name.text == "filter")
            return filterBlock(line);
        if (name.text == "generation") {
            endTag();
            NodePtr node = make(Op::Generation, line, block({"endgeneration"}));
            close();
            return node;
        }
        if (name.text == "break" || name.text == "continue") {
            endTag();
            if (m_loops == 0)
                return fail(shownName(name.text) + " stands outside of a loop");
            return make(name.text == "break" ? Op::Break : Op::Continue, line);
        }
        return fail("the tag " + shownName(name.text) + " is not supported");
    }

    NodePtr choice(int line)
    {
        NodePtr node = make(Op::If, line);
        NodePtr condition = tuple();
        while (status().ok()) {
            endTag();
            add(*node, std::move(condition));
            add(*node, block({"elif", "else", "endif"}));
            if (!skipName("elif"))
                break;
            condition = tuple();
        }
        NodePtr otherwise;
        if (skipName("else")) {
            endTag();
            otherwise = block({"endif"});
        }
        close();
        add(*node, std::move(otherwise));
        return node;
    }

    NodePtr loop(int line)
    {
        NodePtr names = target();
        if (status().ok() && !skipName("in"))
            return fail("\"in\" is missing in the for tag");
        NodePtr iterable = tuple(false);
        NodePtr condition = skipName("if") ? expression() : nullptr;
        endTag();
        m_loops += 1;
        NodePtr body = block({"else", "endfor"});
        m_loops -= 1;
        NodePtr otherwise;
        if (skipName("else")) {
            endTag();
            otherwise = block({"endfor"});
        }
        close();
        return make(Op::For, line, std::move(names), std::move(iterable), std::move(condition),
            std::move(body), std::move(otherwise));
    }

    NodePtr assignment(int line)
    {
        NodePtr names = target();
        if (skipSign("=")) {
            NodePtr value = tuple();
            endTag();
            return make(Op::Set, line, std::move(names), std::move(value));
        }
        NodePtr chain = peek().is(Type::Sign, "|") ? filters(make(Op::Captured, line)) : nullptr;
        endTag();
        NodePtr body = block({"endset"});
        close();
        return make(Op::SetBlock, line, std::move(names), std::move(body), std::move(chain));
    }

    NodePtr filterBlock(int line)
    {
        NodePtr chain = make(Op::Filter, line, make(Op::Captured, line));
        // The first filter of the tag has no "|" before it.
        chain = firstFilter(std::move(chain));
        endTag();
        NodePtr body = block({"endfilter"});
        close();
        return make(Op::FilterBlock, line, std::move(chain), std::move(body));
    }

    NodePtr firstFilter(NodePtr node)
    {
        node->text = takeName("a filter");
        if (status().ok() && !isFilter(node->text))
            return fail("the filter " + shownName(node->text) + " is not supported");
        if (peek().is(Type::Sign, "("))
            arguments(*node);
        return filters(std::move(node));
    }

    NodePtr with(int line)
    {
        NodePtr node = make(Op::With, line);
        while (status().ok() && peek().type != Type::TagEnd) {
            add(*node, target());
            expectSign("=");
            add(*node, expression());
            if (peek().type != Type::TagEnd)
                expectSign(",");
        }
        endTag();
        add(*node, block({"endwith"}));
        close();
        return node;
    }

    NodePtr macro(int line)
    {
        NodePtr node = make(Op::Macro, line);
        node->text = takeName("a macro");
        std::vector<NodePtr> defaults;
        expectSign("(");
        while (status().ok() && !skipSign(")")) {
            node->names.push_back(takeName("a parameter"));
            if (skipSign("="))
                defaults.push_back(expression());
            else if (!defaults.empty())
                return fail("a parameter without a default follows one with a default");
            if (!peek().is(Type::Sign, ")"))
                expectSign(",");
        }
        endTag();
        const int loops = std::exchange(m_loops, 0); // a loop around the macro is not its own
        add(*node, block({"endmacro"}));
        m_loops = loops;
        close();
        for (NodePtr& value : defaults)
            add(*node, std::move(value));
        return node;
    }

    int m_depth = 0;
    int m_loops = 0;
};

} // namespace

Result<NodePtr> parseTemplate(std::string_view source)
{
    Result<std::vector<Token>> tokens = cutTemplate(source);
    if (!tokens.ok())
        return tokens.status();
    return Parser(std::move(tokens).value()).run();
}

} // namespace mr::tpl
