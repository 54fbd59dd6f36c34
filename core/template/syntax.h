// A chat template as a tree, and the parser that makes it.
//
//     source -> lexer (text, tags, white space control) -> parser -> Node -> evaluator
//
// Threads    parseTemplate() is a function of its argument; a tree is constant afterwards.
// Ownership  A node owns the nodes below it.
// Errors     InvalidArgument: "line 12: ..." with the line in the template and the name that is
//            not known; nesting deeper than kMaxDepth.

#pragma once

#include "core/template/value.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mr::tpl {

enum class Op : std::uint8_t {
    // expressions
    Constant,    // value
    Name,        // text
    List,        // children
    Tuple,       // children
    Dict,        // children: key, value, key, value
    Attribute,   // children: object; text
    Subscript,   // children: object, index
    Slice,       // children: begin, end, step; each may be null
    Call,        // children: callee, arguments: of those that are not spread out, the last
                 // `names.size()` are keywords
    Spread,      // children: the operand of an argument's *
    SpreadPairs, // likewise behind **
    Filter,      // children: input, arguments as above; text
    Test,        // children: input, arguments as above; text
    Negate,
    Plus,
    Not,
    And,
    Or,
    Arithmetic, // text: + - * / // % **
    Concat,     // children
    Compare,    // children: first, others; names: == != < <= > >= in, not in
    Choice,     // children: condition, then, else (may be null)
    // statements
    Block,       // children
    Write,       // children: expression
    Literal,     // value: text of the template
    If,          // children: condition, body, condition, body, ..., body of else or null
    For,         // children: target, iterable, condition or null, body, else or null
    Set,         // children: target, expression
    SetBlock,    // children: target, body, filters or null
    FilterBlock, // children: filters, body
    With,        // children: target, value, target, value, ..., body
    Macro,       // text; names: parameters; children: body, defaults of the last ones; asks
    CallBlock,   // children: a Call, the Macro that is its caller
    Generation,  // children: body
    Break,
    Continue,
    Captured, // the text a block of set or filter produced: the input of its filters
};

// Names that the body of a macro reads beside its parameters.
struct MacroAsks {
    bool caller = false;
    bool varargs = false; // arguments beyond the parameters
    bool kwargs = false;  // named ones that are no parameters
};

struct Node {
    Op op = Op::Constant;
    int line = 0;
    int depth = 0;
    std::string text;
    std::vector<std::string> names;
    std::vector<std::unique_ptr<Node>> children;
    Value value;
    bool isRecursive = false; // For
    MacroAsks asks;           // Macro
};

using NodePtr = std::unique_ptr<Node>;

struct Token {
    enum class Type : std::uint8_t {
        Text,
        TagBegin,
        TagEnd,
        PrintBegin,
        PrintEnd,
        Name,
        Number,
        String,
        Sign,
        End
    };
    Type type = Type::End;
    std::string text; // String: its value, unescaped
    int line = 0;

    bool is(Type wanted, std::string_view what) const noexcept
    {
        return type == wanted && text == what;
    }
};

// Cuts `source` with trim_blocks and lstrip_blocks on, as transformers sets them.
Result<std::vector<Token>> cutTemplate(std::string_view source);

Result<NodePtr> parseTemplate(std::string_view source);

Status templateError(int line, const std::string& message);

} // namespace mr::tpl
