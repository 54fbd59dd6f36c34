// The filters of chat templates.

#include "core/template/filters.h"

#include "core/base/shown_text.h"

#include <algorithm>
#include <array>

namespace mr::tpl {
namespace {

using Run = Value (*)(Evaluator&, const Value& input, const Bound&);

Value trim(Evaluator& evaluator, const Value& input, const Bound& in)
{
    if (!evaluator.spend(input.weight()))
        return {};
    const Text text = asText(input);
    const bool all = in[0] == nullptr || in[0]->is(Kind::None);
    const std::string set = textOr(in[0], "").bytes();
    const Range range = stripped(text.bytes(), true, true, all ? nullptr : &set);
    return evaluator.makeLike(input, text.slice(range.begin, range.end));
}

Value length(Evaluator& evaluator, const Value& input, const Bound&)
{
    std::size_t count = 0;
    if (input.is(Kind::String))
        count = evaluator.spend(input.weight()) ? input.text().characterCount() : 0;
    else if (input.isSequence())
        count = input.items().size();
    else if (input.is(Kind::Dict))
        count = input.pairs().size();
    else if (!input.is(Kind::Undefined))
        return evaluator.fail(
            std::string("a value of type ") + input.typeName() + " has no length");
    return Value::integer(static_cast<std::int64_t>(count));
}

bool jsonStyle(Evaluator& evaluator, const Bound& in, JsonStyle& style)
{
    style.ascii = on(in[0]);
    style.sortKeys = on(in[3]);
    style.hasIndent = in[1] != nullptr && !in[1]->is(Kind::None);
    if (style.hasIndent) {
        if (in[1]->is(Kind::String))
            style.indent = in[1]->text().bytes();
        else if (in[1]->isIntegral() && in[1]->asInt() <= 64)
            style.indent = std::string(
                static_cast<std::size_t>(std::max<std::int64_t>(in[1]->asInt(), 0)), ' ');
        else
            return evaluator.fail("tojson takes an indent of at most 64 spaces, or a text").truth();
        style.itemSeparator = ",";
    }
    if (in[2] == nullptr || in[2]->is(Kind::None))
        return true;
    const bool pair = in[2]->isSequence() && in[2]->items().size() == 2 &&
                      in[2]->items()[0].is(Kind::String) && in[2]->items()[1].is(Kind::String);
    if (!pair)
        return evaluator.fail("tojson takes two texts as separators").truth();
    style.itemSeparator = in[2]->items()[0].text().bytes();
    style.keySeparator = in[2]->items()[1].text().bytes();
    return true;
}

Value toJson(Evaluator& evaluator, const Value& input, const Bound& in)
{
    JsonStyle style;
    if (!jsonStyle(evaluator, in, style))
        return {};
    const std::size_t each =
        1 + style.itemSeparator.size() + style.keySeparator.size() + 10 * style.indent.size();
    if (!evaluator.spend(input.weight() * each))
        return {};
    std::string out;
    const Status written = writeJson(input, style, out);
    if (!written.ok())
        return evaluator.fail(written.message());
    const bool plain = !input.isSequence() && !input.is(Kind::Dict);
    const std::uint8_t flags = !plain                   ? std::uint8_t{kFromData}
                               : input.is(Kind::String) ? input.text().anyFlags()
                                                        : std::uint8_t{0};
    return evaluator.makeString(Text(out, flags));
}

template <Letters how>
Value letters(Evaluator& evaluator, const Value& input, const Bound&)
{
    if (!evaluator.spend(8 * input.weight()))
        return {};
    Text out = changeCase(asText(input), how);
    return how == Letters::WordTitle ? evaluator.makeString(std::move(out))
                                     : evaluator.makeLike(input, std::move(out));
}

Value replace(Evaluator& evaluator, const Value& input, const Bound& in)
{
    if (in[0] == nullptr || in[1] == nullptr ||
        (in[2] != nullptr && !in[2]->isIntegral() && !in[2]->is(Kind::None)))
        return evaluator.fail("replace takes two texts, and perhaps how often");
    if (!evaluator.spend(input.weight()))
        return {};
    const Text text = asText(input);
    const std::string what = asText(*in[0]).bytes();
    const Text with = asText(*in[1]);
    const std::size_t most = text.byteCount() / std::max<std::size_t>(what.size(), 1) + 1;
    const std::int64_t times = in[2] == nullptr || in[2]->is(Kind::None) ? -1 : in[2]->asInt();
    return evaluator.spend(most * (1 + with.byteCount() / 8))
               ? evaluator.makeString(replaced(text, what, with, times))
               : Value();
}

Value otherwise(Evaluator&, const Value& input, const Bound& in)
{
    const bool use = input.is(Kind::Undefined) || (on(in[1]) && !input.truth());
    return !use ? input : in[0] != nullptr ? *in[0] : Value::string("");
}

Value string(Evaluator& evaluator, const Value& input, const Bound&)
{
    return evaluator.spend(input.weight()) ? evaluator.makeLike(input, asText(input)) : Value();
}

Value safe(Evaluator& evaluator, const Value& input, const Bound&)
{
    return evaluator.spend(input.weight()) ? Value::markup(asText(input)) : Value();
}

Value escape(Evaluator& evaluator, const Value& input, const Bound&)
{
    return evaluator.spend(8 * input.weight()) ? Value::markup(escapedText(input)) : Value();
}

// Cut behind a word unless words may be cut, with a mark that it was.
Value truncate(Evaluator& evaluator, const Value& input, const Bound& in)
{
    const auto number = [&in](std::size_t at, std::int64_t otherwise) {
        return in[at] == nullptr ? otherwise : in[at]->isIntegral() ? in[at]->asInt() : -1;
    };
    const std::int64_t length = number(0, 255);
    if (in[2] != nullptr && in[2]->isMarkup())
        return evaluator.fail("truncate with an escaped mark (|safe, |e) is not supported");
    const Text mark = textOr(in[2], "...");
    const auto marked = static_cast<std::int64_t>(mark.characterCount());
    const bool noLeeway = in[3] == nullptr || in[3]->is(Kind::None);
    const std::int64_t leeway = noLeeway ? 5 : number(3, 5);
    if (!input.is(Kind::String) || length < marked || leeway < 0)
        return evaluator.fail("truncate needs a text and a length of at least that of its mark");
    if (!evaluator.spend(8 * input.weight()))
        return {};
    const std::vector<std::size_t> at = input.text().characters();
    const auto count = static_cast<std::int64_t>(at.size()) - 1;
    if (count <= length || count - length <= leeway)
        return input;
    std::size_t end = at[static_cast<std::size_t>(length - marked)];
    const std::size_t space =
        end == 0 ? std::string::npos : input.text().bytes().rfind(' ', end - 1);
    if (!on(in[1]) && space != std::string::npos)
        end = space;
    Text out = input.text().slice(0, end);
    out.append(input.isMarkup() ? escaped(mark) : mark);
    return evaluator.makeLike(input, std::move(out));
}

Value indent(Evaluator& evaluator, const Value& input, const Bound& in)
{
    const bool spaces = in[0] == nullptr || in[0]->isIntegral();
    const std::int64_t width = in[0] != nullptr && spaces ? in[0]->asInt() : 4;
    if (!input.is(Kind::String) || width > 1000)
        return evaluator.fail("indent needs a text and a width of at most 1000");
    const Text mark =
        spaces ? Text(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '))
               : asText(*in[0]);
    Text whole = input.text();
    whole.append("\n", 0); // so that a line feed at the end has an empty line behind it
    const std::vector<Text> parts = lines(whole, false);
    if (!evaluator.spend(input.weight() * 8 + parts.size() * (1 + mark.byteCount() / 8)))
        return {};
    Text out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0)
            out.append("\n", 0);
        if (i == 0 ? on(in[1]) : on(in[2]) || !parts[i].empty())
            out.append(mark);
        out.append(parts[i]);
    }
    return evaluator.makeLike(input, std::move(out));
}

struct FilterEntry {
    std::string_view name;
    std::string_view parameters;
    Run run;
};

constexpr std::array<FilterEntry, 34> kFilters{{{"trim", "chars", &trim}, {"length", "", &length},
    {"count", "", &length}, {"tojson", "ensure_ascii indent separators sort_keys", &toJson},
    {"join", "d attribute", &joinFilter}, {"upper", "", &letters<Letters::Upper>},
    {"lower", "", &letters<Letters::Lower>}, {"title", "", &letters<Letters::WordTitle>},
    {"capitalize", "", &letters<Letters::Capital>}, {"replace", "old new count", &replace},
    {"default", "default_value boolean", &otherwise}, {"d", "default_value boolean", &otherwise},
    {"first", "", &first}, {"last", "", &last}, {"list", "", &list}, {"items", "", &pairsOf},
    {"dictsort", "case_sensitive by reverse", &dictSort},
    {"sort", "reverse case_sensitive attribute", &sort},
    {"unique", "case_sensitive attribute", &unique}, {"reverse", "", &reverse},
    {"string", "", &string}, {"int", "default", &toInt}, {"float", "default", &toFloat},
    {"abs", "", &absolute}, {"indent", "width first blank", &indent}, {"safe", "", &safe},
    {"sum", "attribute", &sum}, {"e", "", &escape}, {"escape", "", &escape},
    {"min", "case_sensitive attribute", &least}, {"max", "case_sensitive attribute", &greatest},
    {"round", "precision method", &rounded}, {"truncate", "length killwords end leeway", &truncate},
    {"batch", "linecount fill_with", &batch}}};

// Filters that take as many arguments as they are given: those of another filter or test, or of a
// format.
constexpr std::array<std::string_view, 6> kOuter{
    "map", "select", "reject", "selectattr", "rejectattr", "format"};

const FilterEntry* entry(std::string_view name)
{
    const auto found = std::find_if(
        kFilters.begin(), kFilters.end(), [name](const FilterEntry& e) { return e.name == name; });
    return found == kFilters.end() ? nullptr : &*found;
}

// Arguments for the inner filter or test: the positional ones from `begin` on, and all named ones.
Arguments from(const Arguments& arguments, std::size_t begin)
{
    Arguments out;
    out.named = arguments.named;
    for (std::size_t i = begin; i < arguments.positional.size(); ++i)
        out.positional.push_back(arguments.positional[i]);
    return out;
}

Value formatted(Evaluator& evaluator, const Value& input, const Arguments& arguments)
{
    if (!arguments.named.empty() && !arguments.positional.empty())
        return evaluator.fail("format takes values or names with values, not both");
    Pairs pairs;
    for (const auto& [name, value] : arguments.named)
        pairs.emplace_back(Value::string(name), value);
    const Value values = pairs.empty() ? evaluator.makeList(arguments.positional, Kind::Tuple)
                                       : evaluator.makeDict(std::move(pairs));
    const Value text = input.is(Kind::String) ? input : evaluator.makeString(asText(input));
    return evaluator.failed() ? Value() : formatPercent(evaluator, text, values);
}

// An input that stands for nothing (none, 0, "") gives nothing and ignores the arguments.
Value mapped(Evaluator& evaluator, const Value& input, const Arguments& arguments)
{
    if (!input.truth())
        return Value::lazy({});
    const Bound given = arguments.positional.empty()
                            ? evaluator.bind("map", "attribute default", arguments)
                            : Bound{nullptr, nullptr};
    const bool byName = !arguments.positional.empty() && arguments.positional[0].is(Kind::String);
    if (!byName &&
        (given[0] == nullptr || (!given[0]->is(Kind::String) && !given[0]->isIntegral())))
        return evaluator.fail("map takes attribute=NAME, or the name of a filter");
    Items out;
    for (const Value& item : evaluator.iterate(input)) {
        out.push_back(byName ? evaluator.filter(
                                   arguments.positional[0].text().bytes(), item, from(arguments, 1))
                             : reach(evaluator, item, *given[0], given[1]));
        if (evaluator.failed())
            return {};
    }
    return evaluator.checked(Value::lazy(std::move(out)));
}

Value chosen(
    Evaluator& evaluator, const std::string& name, const Value& input, const Arguments& arguments)
{
    if (!input.truth())
        return Value::lazy({});
    const bool byAttribute = name.ends_with("attr");
    const std::size_t skip = byAttribute ? 1 : 0;
    const Items& given = arguments.positional;
    if (given.size() < skip ||
        (byAttribute && !given[0].is(Kind::String) && !given[0].isIntegral()))
        return evaluator.fail(shownName(name) + " takes the name of an attribute first");
    const bool tested = given.size() > skip;
    if (tested && !given[skip].is(Kind::String))
        return evaluator.fail(shownName(name) + " takes the name of a test");
    Items out;
    for (const Value& item : evaluator.iterate(input)) {
        Value value = byAttribute ? reach(evaluator, item, given[0], nullptr) : item;
        if (tested && !evaluator.failed())
            value = evaluator.test(given[skip].text().bytes(), value, from(arguments, skip + 1));
        if (evaluator.failed())
            return {};
        if (value.truth() == name.starts_with("select"))
            out.push_back(item);
    }
    return evaluator.checked(Value::lazy(std::move(out)));
}

} // namespace

bool isFilter(std::string_view name) noexcept
{
    return entry(name) != nullptr || std::find(kOuter.begin(), kOuter.end(), name) != kOuter.end();
}

Value Evaluator::filter(const std::string& name, const Value& input, const Arguments& arguments)
{
    if (!spend(1))
        return {};
    if (name == "map")
        return mapped(*this, input, arguments);
    if (name == "format")
        return formatted(*this, input, arguments);
    if (isFilter(name) && entry(name) == nullptr)
        return chosen(*this, name, input, arguments);
    const FilterEntry* const found = entry(name);
    if (found == nullptr)
        return fail("the filter " + shownName(name) + " is not supported");
    const Bound given = bind(name, found->parameters, arguments);
    return failed() ? Value() : found->run(*this, input, given);
}

} // namespace mr::tpl
