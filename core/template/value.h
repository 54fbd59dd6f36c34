// The values of a chat template: those of Python that templates touch, immutable but for
// namespaces.
//
// Threads    Values are confined to one rendering.
// Ownership  Containers are shared and never change, so there are no cycles; namespaces, loops and
//            macros belong to the evaluator and are only pointed to.
// Errors     Callers check kinds first; see Failure for how an operation reports.

#pragma once

#include "core/template/text.h"

#include <millrace/status.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace mr::tpl {

struct Scope;
struct Macro;
struct Loop;
class Value;

enum class Kind : std::uint8_t {
    Undefined,
    None,
    Bool,
    Int,
    Float,
    String,
    List,
    Tuple,
    Lazy, // a generator's items: always true, once through, without a length
    Dict,
    Namespace,
    Macro,
    Loop,
    Method,   // bound to `self`
    Function, // a global one
};

using Items = std::vector<Value>;
using Pairs = std::vector<std::pair<Value, Value>>; // in order of first assignment

struct LazyItems;
struct BoundMethod;

class Value
{
public:
    Value() = default; // undefined
    static Value undefined(std::string what);
    static Value none();
    static Value boolean(bool on);
    static Value integer(std::int64_t number);
    static Value real(double number);
    static Value string(Text text);
    static Value string(std::string_view bytes, std::uint8_t flags = 0);
    // A text that |safe or |e made: another one that is added to it is escaped first.
    static Value markup(Text text);
    static Value list(Items items, Kind kind = Kind::List);
    static Value lazy(Items items);
    static Value dict(Pairs pairs);
    static Value space(Scope* scope);
    static Value macro(const Macro* macro);
    static Value loop(Loop* loop);
    static Value method(Value self, std::string name);
    static Value function(std::string name);

    Kind kind() const noexcept { return m_kind; }
    bool is(Kind kind) const noexcept { return m_kind == kind; }
    bool isNumber() const noexcept { return is(Kind::Bool) || is(Kind::Int) || is(Kind::Float); }
    bool isIntegral() const noexcept { return is(Kind::Bool) || is(Kind::Int); }
    bool isMarkup() const noexcept { return m_isMarkup; } // a String, too
    bool isSequence() const noexcept { return is(Kind::List) || is(Kind::Tuple); }

    bool asBool() const noexcept { return m_int != 0; }
    std::int64_t asInt() const noexcept { return m_int; } // Bool, Int
    double asReal() const noexcept;                       // any number
    const Text& text() const noexcept { return shared<const Text>(); }
    const std::string& name() const noexcept { return text().bytes(); } // Undefined, Function
    const Items& items() const noexcept { return shared<const Items>(); }
    const Pairs& pairs() const noexcept { return shared<const Pairs>(); }
    LazyItems& lazyItems() const noexcept { return shared<LazyItems>(); }
    const BoundMethod& bound() const noexcept { return shared<const BoundMethod>(); }
    Scope* scope() const noexcept { return static_cast<Scope*>(m_owned); }
    const Macro* macro() const noexcept { return static_cast<const Macro*>(m_owned); }
    Loop* loop() const noexcept { return static_cast<Loop*>(m_owned); }

    // How deeply containers nest; the evaluator refuses more than kMaxNesting, so that taking a
    // value apart and freeing it cannot exhaust the stack.
    int nesting() const noexcept { return m_nesting; }
    static constexpr int kMaxNesting = 100;
    // Values in it, each as often as it would be written, and one for eight bytes of text. Lists
    // that share parts can be written far longer than they are, so limits look at this number.
    std::uint32_t weight() const noexcept { return m_weight; }
    static constexpr std::uint32_t kMaxWeight = 8'000'000;

    bool truth() const noexcept;
    const Value* find(const Value& key) const; // in a Dict
    const Value* find(std::string_view key) const;
    const char* typeName() const noexcept; // as Python calls it

private:
    template <typename T>
    T& shared() const noexcept
    {
        return *static_cast<T*>(m_shared.get());
    }

    void hold(const Value& inner) noexcept; // counts it

    Kind m_kind = Kind::Undefined;
    bool m_isMarkup = false;
    std::uint8_t m_nesting = 0;
    std::uint32_t m_weight = 1;
    union {
        std::int64_t m_int = 0;
        double m_real;
        void* m_owned;
    };
    std::shared_ptr<void> m_shared; // Text, Items, Pairs, ... by m_kind
};

struct LazyItems {
    Items items;
    std::size_t next = 0;
};

struct BoundMethod {
    Value self;
    std::string name;
};

bool equal(const Value& a, const Value& b);
enum class Order : std::uint8_t { Less, Equal, Greater, None }; // None: Python refuses
Order compare(const Value& a, const Value& b);

// str(value) and repr(value) as Python writes them. A container's text counts as data.
Text asText(const Value& value);
std::string repr(const Value& value);
std::string numberText(double number);

// json.dumps(value, ensure_ascii=False, ...) of Python.
struct JsonStyle {
    std::string indent; // empty and !hasIndent: on one line
    bool hasIndent = false;
    bool sortKeys = false;
    bool ascii = false;
    std::string itemSeparator = ", ";
    std::string keySeparator = ": ";
};
// InvalidArgument: a value JSON has no word for.
Status writeJson(const Value& value, const JsonStyle& style, std::string& out, int depth = 0);

// A parsed document as template values; every text in it is data. InvalidArgument: a whole number
// beyond 64 bits, nesting deeper than kMaxNesting.
Result<Value> fromJson(const nlohmann::ordered_json& json);

} // namespace mr::tpl
