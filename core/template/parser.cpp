// The statements of a chat template.

#include "core/base/shown_text.h"
#include "core/template/evaluator.h"
#include "core/template/expressions.h"

#include <algorithm>

namespace mr::tpl {
namespace {

// Which of the names that a macro is given besides its parameters a body reads, in the order Jinja
// looks for them: one that is set before it is read is the body's own.
class NameSearch
{
public:
    void read(const Node& node)
    {
        if (node.op == Op::Name)
            mark(node.text, m_found);
        if (node.op == Op::Macro) // its parameters are its own
            for (const std::string& name : node.names)
                mark(name, m_set);
        const bool sets = node.op == Op::For || node.op == Op::Set || node.op == Op::SetBlock;
        for (std::size_t i = 0; i < node.children.size(); ++i) {
            if (node.children[i] == nullptr)
                continue;
            const bool isTarget = (sets && i == 0) || (node.op == Op::With && i % 2 == 0 &&
                                                          i + 1 < node.children.size());
            isTarget ? write(*node.children[i]) : read(*node.children[i]);
        }
    }

    MacroAsks found() const { return m_found; }

private:
    void write(const Node& target)
    {
        if (target.op == Op::Name)
            mark(target.text, m_set);
        for (const NodePtr& child : target.op == Op::Tuple ? target.children : m_none)
            write(*child);
    }

    void mark(const std::string& name, MacroAsks& into) const
    {
        into.caller |= name == "caller" && !m_set.caller;
        into.varargs |= name == "varargs" && !m_set.varargs;
        into.kwargs |= name == "kwargs" && !m_set.kwargs;
    }

    const std::vector<NodePtr> m_none{};
    MacroAsks m_found;
    MacroAsks m_set;
};

MacroAsks unboundNames(const Node& body)
{
    NameSearch search;
    search.read(body);
    return search.found();
}

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

    // Statements up to a tag that begins with one of `ends`; its name is left to be read. Without
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
        if (name.text == "call")
            return callBlock(line);
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
        const bool isRecursive = skipName("recursive");
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
        NodePtr node = make(Op::For, line, std::move(names), std::move(iterable),
            std::move(condition), std::move(body), std::move(otherwise));
        node->isRecursive = isRecursive;
        return node;
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
        parameters(*node, defaults);
        finishMacro(*node, std::move(defaults), "endmacro");
        return node;
    }

    // {% call(parameters) macro(arguments) %}
    NodePtr callBlock(int line)
    {
        std::vector<NodePtr> defaults;
        NodePtr caller = make(Op::Macro, line);
        caller->text = "caller";
        if (skipSign("("))
            parameters(*caller, defaults);
        NodePtr called = expression();
        if (status().ok() && called->op != Op::Call)
            return fail("the tag \"call\" needs the call of a macro");
        finishMacro(*caller, std::move(defaults), "endcall");
        return make(Op::CallBlock, line, std::move(called), std::move(caller));
    }
    // Behind the bracket that opens them.
    void parameters(Node& macro, std::vector<NodePtr>& defaults)
    {
        while (status().ok() && !skipSign(")")) {
            macro.names.push_back(takeName("a parameter"));
            if (skipSign("="))
                defaults.push_back(expression());
            else if (!defaults.empty())
                fail("a parameter without a default follows one with a default");
            if (!peek().is(Type::Sign, ")"))
                expectSign(",");
        }
    }

    void finishMacro(Node& macro, std::vector<NodePtr> defaults, std::string_view end)
    {
        endTag();
        const int loops = std::exchange(m_loops, 0); // a loop around the macro is not its own
        add(macro, block({end}));
        m_loops = loops;
        close();
        if (!status().ok())
            return;
        const std::size_t firstDefault = macro.names.size() - defaults.size();
        macro.asks = unboundNames(*macro.children[0]);
        const auto own = std::find(macro.names.begin(), macro.names.end(), "caller");
        if (macro.asks.caller && own != macro.names.end() &&
            static_cast<std::size_t>(own - macro.names.begin()) < firstDefault)
            fail("the parameter \"caller\" needs a default");
        for (NodePtr& value : defaults)
            add(macro, std::move(value));
    }

    int m_depth = 0;
    int m_loops = 0;
};

} // namespace

Result<NodePtr> parseTemplate(std::string_view source)
{
    MR_ASSIGN(std::vector<Token> tokens, cutTemplate(source));
    return Parser(std::move(tokens)).run();
}

} // namespace mr::tpl
