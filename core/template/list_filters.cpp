#include "core/template/filters.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace mr::tpl {
namespace {

Value reached(Evaluator& evaluator, const Value& item, const Value* path)
{
    if (path == nullptr || path->is(Kind::None))
        return item;
    return path->is(Kind::String) || path->isIntegral() ? reach(evaluator, item, *path, nullptr)
                                                        : evaluator.fail("an attribute is a text");
}

Value folded(Evaluator& evaluator, const Value& value, bool caseSensitive)
{
    if (caseSensitive || !value.is(Kind::String))
        return value;
    return evaluator.spend(value.weight() * 8)
               ? Value::string(changeCase(value.text(), Letters::Lower))
               : Value();
}

struct Keyed {
    Value key;
    Value item;
};

// Stable, and stable backwards too, as Python sorts.
Items sorted(Evaluator& evaluator, std::vector<Keyed> keyed, bool reverse)
{
    bool orderless = false;
    std::size_t weight = 0;
    for (const Keyed& k : keyed)
        weight += k.key.weight();
    if (!evaluator.spend(weight * 20))
        return {};
    for (std::size_t i = 1; i < keyed.size() && !orderless; ++i) // an order needs one kind of keys
        orderless = compare(keyed[0].key, keyed[i].key) == Order::None;
    if (orderless || (keyed.size() > 1 && compare(keyed[0].key, keyed[0].key) == Order::None)) {
        evaluator.fail("values of different types cannot be sorted");
        return {};
    }
    std::stable_sort(keyed.begin(), keyed.end(), [reverse](const Keyed& a, const Keyed& b) {
        return compare(a.key, b.key) == (reverse ? Order::Greater : Order::Less);
    });
    Items out;
    for (Keyed& k : keyed)
        out.push_back(std::move(k.item));
    return out;
}

} // namespace

Value reach(Evaluator& evaluator, const Value& item, const Value& path, const Value* otherwise)
{
    if (path.isIntegral())
        return evaluator.item(item, path);
    const std::string& text = path.text().bytes();
    Value out = item;
    for (std::size_t at = 0; at <= text.size() && !evaluator.failed();) {
        const std::size_t end = std::min(text.find('.', at), text.size());
        const std::string part = text.substr(at, end - at);
        std::int64_t index = 0;
        const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
        const bool number =
            !part.empty() && read.ec == std::errc() && read.ptr == part.data() + part.size();
        out = evaluator.item(out, number ? Value::integer(index) : Value::string(part));
        if (out.is(Kind::Undefined) && otherwise != nullptr)
            return *otherwise;
        at = end + 1;
    }
    return out;
}

Value joinFilter(Evaluator& evaluator, const Value& input, const Bound& in)
{
    const Text between = textOr(in[0], "");
    std::vector<Text> texts;
    for (const Value& item : evaluator.iterate(input)) {
        const Value part = reached(evaluator, item, in[1]);
        if (!evaluator.spend(part.weight() + between.byteCount() / 8))
            return {};
        texts.push_back(asText(part));
    }
    return evaluator.makeString(join(texts, between));
}

Value first(Evaluator& evaluator, const Value& input, const Bound&)
{
    if (input.is(Kind::Lazy)) {
        LazyItems& lazy = input.lazyItems();
        return lazy.next < lazy.items.size() ? lazy.items[lazy.next++]
                                             : Value::undefined("first item");
    }
    const Items items = evaluator.iterate(input);
    return items.empty() ? Value::undefined("the first item of nothing") : items.front();
}

Value last(Evaluator& evaluator, const Value& input, const Bound&)
{
    if (input.is(Kind::Lazy))
        return evaluator.fail("last needs a list; put |list before it");
    const Items items = evaluator.iterate(input);
    return items.empty() ? Value::undefined("the last item of nothing") : items.back();
}

Value list(Evaluator& evaluator, const Value& input, const Bound&)
{
    return evaluator.makeList(evaluator.iterate(input));
}

Value pairsOf(Evaluator& evaluator, const Value& input, const Bound&)
{
    if (!input.is(Kind::Dict) && !input.is(Kind::Undefined))
        return evaluator.fail(std::string("items needs a dict, not a ") + input.typeName());
    Items out;
    for (const auto& [key, value] : input.is(Kind::Dict) ? input.pairs() : Pairs())
        out.push_back(evaluator.makeList({key, value}, Kind::Tuple));
    return evaluator.checked(Value::lazy(std::move(out)));
}

Value sort(Evaluator& evaluator, const Value& input, const Bound& in)
{
    std::vector<Keyed> keyed;
    for (const Value& item : evaluator.iterate(input))
        keyed.push_back({folded(evaluator, reached(evaluator, item, in[2]), on(in[1])), item});
    return evaluator.makeList(sorted(evaluator, std::move(keyed), on(in[0])));
}

Value dictSort(Evaluator& evaluator, const Value& input, const Bound& in)
{
    const std::string by = textOr(in[1], "key").bytes();
    if (!input.is(Kind::Dict) || (by != "key" && by != "value"))
        return evaluator.fail("dictsort needs a dict, sorted by \"key\" or \"value\"");
    std::vector<Keyed> keyed;
    for (const auto& [key, value] : input.pairs())
        keyed.push_back({folded(evaluator, by == "key" ? key : value, on(in[0])),
            evaluator.makeList({key, value}, Kind::Tuple)});
    return evaluator.makeList(sorted(evaluator, std::move(keyed), on(in[2])));
}

Value unique(Evaluator& evaluator, const Value& input, const Bound& in)
{
    Items seen;
    Items out;
    for (const Value& item : evaluator.iterate(input)) {
        const Value key = folded(evaluator, reached(evaluator, item, in[1]), on(in[0]));
        if (!evaluator.spend(seen.size() + key.weight()))
            return {};
        if (std::any_of(seen.begin(), seen.end(), [&key](const Value& s) { return equal(s, key); }))
            continue;
        seen.push_back(key);
        out.push_back(item);
    }
    return evaluator.checked(Value::lazy(std::move(out)));
}

Value reverse(Evaluator& evaluator, const Value& input, const Bound&)
{
    Items items = evaluator.iterate(input);
    std::reverse(items.begin(), items.end());
    if (!input.is(Kind::String))
        return input.is(Kind::Lazy) ? evaluator.makeList(std::move(items))
                                    : evaluator.checked(Value::lazy(std::move(items)));
    Text out;
    for (const Value& item : items)
        out.append(item.text());
    return evaluator.makeLike(input, std::move(out));
}

Value sum(Evaluator& evaluator, const Value& input, const Bound& in)
{
    double real = 0;
    std::int64_t whole = 0;
    bool isWhole = true;
    for (const Value& item : evaluator.iterate(input)) {
        const Value part = reached(evaluator, item, in[0]);
        if (evaluator.failed() || !part.isNumber())
            return evaluator.fail("sum needs numbers");
        isWhole &= part.isIntegral();
        real += part.asReal();
        if (part.isIntegral() && __builtin_add_overflow(whole, part.asInt(), &whole))
            return evaluator.fail("a number is larger than 64 bits");
    }
    return isWhole ? Value::integer(whole) : Value::real(real);
}

namespace {

// The first of several that are alike.
Value utmost(Evaluator& evaluator, const Value& input, const Bound& in, Order wanted)
{
    const Items items = evaluator.iterate(input);
    if (items.empty())
        return Value::undefined("the least or greatest of nothing");
    const auto keyOf = [&](const Value& item) {
        return folded(evaluator, reached(evaluator, item, in[1]), on(in[0]));
    };
    const Value* out = &items.front();
    Value best = keyOf(*out);
    for (std::size_t i = 1; i < items.size() && !evaluator.failed(); ++i) {
        Value key = keyOf(items[i]);
        if (!evaluator.spend(std::min(key.weight(), best.weight())))
            return {};
        const Order order = compare(key, best);
        if (order == Order::None && !(key.isNumber() && best.isNumber()))
            return evaluator.fail(std::string("values of different types have no order: ") +
                                  key.typeName() + " and " + best.typeName());
        if (order != wanted)
            continue;
        out = &items[i];
        best = std::move(key);
    }
    return *out;
}

} // namespace

Value least(Evaluator& evaluator, const Value& input, const Bound& in)
{
    return utmost(evaluator, input, in, Order::Less);
}

Value greatest(Evaluator& evaluator, const Value& input, const Bound& in)
{
    return utmost(evaluator, input, in, Order::Greater);
}

Value batch(Evaluator& evaluator, const Value& input, const Bound& in)
{
    if (in[0] == nullptr || !in[0]->isIntegral() || in[0]->asInt() < 1)
        return evaluator.fail("batch takes a whole number above 0");
    const auto each = static_cast<std::size_t>(in[0]->asInt());
    Items out;
    Items part;
    for (const Value& item : evaluator.iterate(input)) {
        if (part.size() == each)
            out.push_back(evaluator.makeList(std::exchange(part, {})));
        part.push_back(item);
    }
    if (!part.empty() && in[1] != nullptr && !in[1]->is(Kind::None)) {
        if (!evaluator.spend(each - part.size()))
            return {};
        part.resize(each, *in[1]);
    }
    if (!part.empty())
        out.push_back(evaluator.makeList(std::move(part)));
    return evaluator.checked(Value::lazy(std::move(out)));
}

} // namespace mr::tpl
