#include "core/template/value.h"

#include <algorithm>
#include <limits>

namespace mr::tpl {

void Value::hold(const Value& inner) noexcept
{
    constexpr int kMost = std::numeric_limits<std::uint8_t>::max();
    m_nesting =
        static_cast<std::uint8_t>(std::max<int>(m_nesting, std::min(inner.m_nesting + 1, kMost)));
    m_weight = std::min(m_weight + inner.m_weight, 2 * kMaxWeight); // no overflow: both are small
}

Value Value::undefined(std::string what)
{
    Value v;
    v.m_shared = std::make_shared<Text>(what);
    return v;
}

Value Value::none()
{
    Value v;
    v.m_kind = Kind::None;
    return v;
}

Value Value::boolean(bool on)
{
    Value v;
    v.m_kind = Kind::Bool;
    v.m_int = on ? 1 : 0;
    return v;
}

Value Value::integer(std::int64_t number)
{
    Value v;
    v.m_kind = Kind::Int;
    v.m_int = number;
    return v;
}

Value Value::real(double number)
{
    Value v;
    v.m_kind = Kind::Float;
    v.m_real = number;
    return v;
}

Value Value::string(Text text)
{
    Value v;
    v.m_kind = Kind::String;
    v.m_weight +=
        static_cast<std::uint32_t>(std::min<std::size_t>(text.byteCount() / 8, kMaxWeight));
    v.m_shared = std::make_shared<Text>(std::move(text));
    return v;
}

Value Value::string(std::string_view bytes, std::uint8_t flags)
{
    return string(Text(bytes, flags));
}

Value Value::markup(Text text)
{
    Value v = string(std::move(text));
    v.m_isMarkup = true;
    return v;
}

Value Value::list(Items items, Kind kind)
{
    Value v;
    v.m_kind = kind;
    for (const Value& item : items)
        v.hold(item);
    v.m_shared = std::make_shared<Items>(std::move(items));
    return v;
}

Value Value::lazy(Items items)
{
    Value v = list({}, Kind::Lazy);
    for (const Value& item : items)
        v.hold(item);
    v.m_shared = std::make_shared<LazyItems>(LazyItems{std::move(items)});
    return v;
}

Value Value::dict(Pairs pairs)
{
    Value v;
    v.m_kind = Kind::Dict;
    for (const auto& [key, value] : pairs) {
        v.hold(key);
        v.hold(value);
    }
    v.m_shared = std::make_shared<Pairs>(std::move(pairs));
    return v;
}

Value Value::space(Scope* scope)
{
    Value v;
    v.m_kind = Kind::Namespace;
    v.m_owned = scope;
    return v;
}

Value Value::macro(const Macro* macro)
{
    Value v;
    v.m_kind = Kind::Macro;
    v.m_owned = const_cast<Macro*>(macro);
    return v;
}

Value Value::loop(Loop* loop)
{
    Value v;
    v.m_kind = Kind::Loop;
    v.m_owned = loop;
    return v;
}

Value Value::method(Value self, std::string name)
{
    Value v;
    v.m_kind = Kind::Method;
    v.hold(self);
    v.m_shared = std::make_shared<BoundMethod>(BoundMethod{std::move(self), std::move(name)});
    return v;
}

Value Value::function(std::string name)
{
    Value v = undefined(std::move(name));
    v.m_kind = Kind::Function;
    return v;
}

double Value::asReal() const noexcept
{
    return is(Kind::Float) ? m_real : static_cast<double>(m_int);
}

bool Value::truth() const noexcept
{
    switch (m_kind) {
    case Kind::Undefined:
    case Kind::None:
        return false;
    case Kind::Bool:
    case Kind::Int:
        return m_int != 0;
    case Kind::Float:
        return m_real != 0;
    case Kind::String:
        return !text().empty();
    case Kind::List:
    case Kind::Tuple:
        return !items().empty();
    case Kind::Dict:
        return !pairs().empty();
    default:
        return true;
    }
}

const Value* Value::find(const Value& key) const
{
    for (const auto& [name, value] : pairs())
        if (equal(name, key))
            return &value;
    return nullptr;
}

const Value* Value::find(std::string_view key) const
{
    for (const auto& [name, value] : pairs())
        if (name.is(Kind::String) && name.text().bytes() == key)
            return &value;
    return nullptr;
}

const char* Value::typeName() const noexcept
{
    static constexpr const char* kNames[] = {"undefined", "None", "bool", "int", "float", "str",
        "list", "tuple", "generator", "dict", "namespace", "macro", "loop", "method", "function"};
    return kNames[static_cast<std::size_t>(m_kind)];
}

namespace {

bool equalItems(const Items& a, const Items& b)
{
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

bool equalPairs(const Value& a, const Value& b)
{
    if (a.pairs().size() != b.pairs().size())
        return false;
    return std::all_of(a.pairs().begin(), a.pairs().end(), [&b](const auto& pair) {
        const Value* other = b.find(pair.first);
        return other != nullptr && equal(pair.second, *other);
    });
}

template <typename T>
Order orderOf(const T& a, const T& b)
{
    return a < b ? Order::Less : b < a ? Order::Greater : a == b ? Order::Equal : Order::None;
}

} // namespace

bool equal(const Value& a, const Value& b)
{
    if (a.isIntegral() && b.isIntegral())
        return a.asInt() == b.asInt();
    if (a.isNumber() && b.isNumber())
        return a.asReal() == b.asReal();
    if (a.kind() != b.kind())
        return false;
    switch (a.kind()) {
    case Kind::Undefined:
    case Kind::None:
        return true;
    case Kind::String:
        return a.text().bytes() == b.text().bytes();
    case Kind::List:
    case Kind::Tuple:
        return equalItems(a.items(), b.items());
    case Kind::Dict:
        return equalPairs(a, b);
    case Kind::Lazy:
        return &a.lazyItems() == &b.lazyItems();
    case Kind::Namespace:
    case Kind::Macro:
    case Kind::Loop:
        return a.loop() == b.loop(); // equal only as one object
    default:
        return false;
    }
}

Order compare(const Value& a, const Value& b)
{
    if (a.isIntegral() && b.isIntegral())
        return orderOf(a.asInt(), b.asInt());
    if (a.isNumber() && b.isNumber())
        return orderOf(a.asReal(), b.asReal());
    if (a.is(Kind::String) && b.is(Kind::String)) // bytes of UTF-8 order as code points do
        return orderOf(a.text().bytes().compare(b.text().bytes()), 0);
    if (!a.isSequence() || a.kind() != b.kind())
        return Order::None;
    const std::size_t shared = std::min(a.items().size(), b.items().size());
    for (std::size_t i = 0; i < shared; ++i)
        if (!equal(a.items()[i], b.items()[i]))
            return compare(a.items()[i], b.items()[i]);
    return orderOf(a.items().size(), b.items().size());
}

} // namespace mr::tpl
