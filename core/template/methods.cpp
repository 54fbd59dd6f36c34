// The methods of texts, lists and dicts that chat templates call.

#include "core/template/filters.h"

#include <algorithm>
#include <array>

namespace mr::tpl {
namespace {

using Run = Value (*)(Evaluator&, const Value& self, const Bound&);

struct MethodEntry {
    std::string_view name;
    std::string_view parameters;
    Run run;
};

const std::string* textOf(const Value* value)
{
    return value != nullptr && value->is(Kind::String) ? &value->text().bytes() : nullptr;
}

template <bool left, bool right>
Value strip(Evaluator& evaluator, const Value& self, const Bound& in)
{
    if (in[0] != nullptr && !in[0]->is(Kind::String) && !in[0]->is(Kind::None))
        return evaluator.fail("strip() takes a text");
    if (!evaluator.spend(self.text().byteCount() / 8))
        return {};
    const Range range = stripped(self.text().bytes(), left, right, textOf(in[0]));
    return evaluator.makeString(self.text().slice(range.begin, range.end));
}

template <Letters how>
Value withLetters(Evaluator& evaluator, const Value& self, const Bound&)
{
    return evaluator.spend(self.text().byteCount())
               ? evaluator.makeString(changeCase(self.text(), how))
               : Value();
}

Value asList(Evaluator& evaluator, const std::vector<Text>& parts)
{
    Items items;
    for (const Text& part : parts)
        items.push_back(evaluator.makeString(part));
    return evaluator.makeList(std::move(items));
}

// split() without a separator: words, with any white space between them.
std::vector<Text> words(const Text& text, std::int64_t most)
{
    std::vector<Text> out;
    const std::string& bytes = text.bytes();
    std::size_t at = 0;
    while (true) {
        at += stripped(std::string_view(bytes).substr(at), true, false).begin;
        if (at >= bytes.size())
            return out;
        std::size_t end = at;
        for (std::size_t next = end; next < bytes.size(); end = next)
            if (isSpace(takeCharacter(bytes, next)))
                break;
        if (most >= 0 && static_cast<std::int64_t>(out.size()) == most)
            end = bytes.size();
        out.push_back(text.slice(at, end));
        at = end;
    }
}

// rsplit() without a separator: the rest stands first, with the white space before it.
std::vector<Text> wordsBack(const Text& text, std::int64_t most)
{
    std::vector<Text> all = words(text, -1);
    if (most < 0 || static_cast<std::int64_t>(all.size()) <= most)
        return all;
    std::vector<Text> out;
    std::size_t end = stripped(text.bytes(), false, true).end;
    for (std::int64_t i = 0; i < most; ++i) {
        out.insert(out.begin(), all.back());
        end -= all.back().byteCount();
        end = stripped(std::string_view(text.bytes()).substr(0, end), false, true).end;
        all.pop_back();
    }
    out.insert(out.begin(), text.slice(0, end));
    return out;
}

std::vector<Text> parts(const Text& text, const std::string& sign, std::int64_t most, bool back)
{
    std::vector<std::size_t> cuts;
    const std::string& bytes = text.bytes();
    if (back) {
        for (std::size_t end = bytes.size(); end >= sign.size();) {
            const std::size_t found = bytes.rfind(sign, end - sign.size());
            if (found == std::string::npos || static_cast<std::int64_t>(cuts.size()) == most)
                break;
            cuts.push_back(found);
            end = found;
        }
        std::reverse(cuts.begin(), cuts.end());
    } else {
        for (std::size_t at = bytes.find(sign); at != std::string::npos;
             at = bytes.find(sign, at + sign.size())) {
            if (static_cast<std::int64_t>(cuts.size()) == most)
                break;
            cuts.push_back(at);
        }
    }
    std::vector<Text> out;
    std::size_t begin = 0;
    for (const std::size_t cut : cuts) {
        out.push_back(text.slice(begin, cut));
        begin = cut + sign.size();
    }
    out.push_back(text.slice(begin, bytes.size()));
    return out;
}

template <bool back>
Value split(Evaluator& evaluator, const Value& self, const Bound& in)
{
    const bool byWords = in[0] == nullptr || in[0]->is(Kind::None);
    const std::string* sign = textOf(in[0]);
    if (!byWords && (sign == nullptr || sign->empty()))
        return evaluator.fail("split() takes a text that is not empty");
    if (in[1] != nullptr && !in[1]->isIntegral())
        return evaluator.fail("split() takes a whole number as its limit");
    if (!evaluator.spend(8 * self.text().byteCount()))
        return {};
    const std::int64_t most = in[1] != nullptr && in[1]->asInt() >= 0 ? in[1]->asInt() : -1;
    if (!byWords)
        return asList(evaluator, parts(self.text(), *sign, most, back));
    return asList(evaluator, back ? wordsBack(self.text(), most) : words(self.text(), most));
}

Value splitLines(Evaluator& evaluator, const Value& self, const Bound& in)
{
    if (!evaluator.spend(8 * self.text().byteCount()))
        return {};
    return asList(evaluator, lines(self.text(), in[0] != nullptr && in[0]->truth()));
}

template <bool front>
Value hasEnd(Evaluator& evaluator, const Value& self, const Bound& in)
{
    Items wanted;
    if (in[0] != nullptr && in[0]->is(Kind::Tuple))
        wanted = in[0]->items();
    else if (in[0] != nullptr)
        wanted = {*in[0]};
    bool found = false;
    for (const Value& end : wanted) {
        const std::string* text = textOf(&end);
        if (text == nullptr)
            return evaluator.fail("startswith() and endswith() take a text or a tuple of texts");
        const std::string& bytes = self.text().bytes();
        found |= front ? bytes.starts_with(*text) : bytes.ends_with(*text);
    }
    return wanted.empty() ? evaluator.fail("a text is missing") : Value::boolean(found);
}

template <bool front>
Value removeEnd(Evaluator& evaluator, const Value& self, const Bound& in)
{
    const std::string* text = textOf(in[0]);
    if (text == nullptr)
        return evaluator.fail("removeprefix() and removesuffix() take a text");
    const std::string& bytes = self.text().bytes();
    if (front ? !bytes.starts_with(*text) : !bytes.ends_with(*text))
        return self;
    const std::size_t rest = bytes.size() - text->size();
    return evaluator.makeString(
        front ? self.text().slice(text->size(), bytes.size()) : self.text().slice(0, rest));
}

Value replaceIn(Evaluator& evaluator, const Value& self, const Bound& in)
{
    const std::string* what = textOf(in[0]);
    if (what == nullptr || textOf(in[1]) == nullptr || (in[2] != nullptr && !in[2]->isIntegral()))
        return evaluator.fail("replace() takes two texts, and perhaps how often");
    const std::size_t bytes = self.text().byteCount();
    const std::size_t most =
        (bytes / std::max<std::size_t>(what->size(), 1) + 1) * in[1]->text().byteCount();
    if (!evaluator.spend(bytes + most / 8))
        return {};
    return evaluator.makeString(replaced(
        self.text(), *what, in[1]->text(), in[2] != nullptr ? in[2]->asInt() : std::int64_t{-1}));
}

template <bool back>
Value find(Evaluator& evaluator, const Value& self, const Bound& in)
{
    const std::string* what = textOf(in[0]);
    if (what == nullptr)
        return evaluator.fail("find() takes a text");
    const std::string& bytes = self.text().bytes();
    const std::size_t at = back ? bytes.rfind(*what) : bytes.find(*what);
    if (!evaluator.spend(bytes.size()) || at == std::string::npos)
        return Value::integer(-1);
    return Value::integer(static_cast<std::int64_t>(self.text().slice(0, at).characterCount()));
}

Value count(Evaluator& evaluator, const Value& self, const Bound& in)
{
    const std::string* what = textOf(in[0]);
    if (what == nullptr || !evaluator.spend(self.text().byteCount()))
        return evaluator.fail("count() takes a text");
    if (what->empty())
        return Value::integer(static_cast<std::int64_t>(self.text().characterCount()) + 1);
    return Value::integer(
        static_cast<std::int64_t>(parts(self.text(), *what, -1, false).size()) - 1);
}

Value joinAll(Evaluator& evaluator, const Value& self, const Bound& in)
{
    std::vector<Text> texts;
    for (const Value& item : in[0] != nullptr ? evaluator.iterate(*in[0]) : Items()) {
        if (!item.is(Kind::String))
            return evaluator.fail(
                std::string("join() of a text takes texts, not a ") + item.typeName());
        if (!evaluator.spend(item.weight() + self.weight()))
            return {};
        texts.push_back(item.text());
    }
    return evaluator.makeString(join(texts, self.text()));
}

template <char first, char last>
Value isAll(Evaluator& evaluator, const Value& self, const Bound&)
{
    const std::string& bytes = self.text().bytes();
    const bool all =
        std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= first && c <= last; });
    return evaluator.spend(bytes.size() / 8) ? Value::boolean(!bytes.empty() && all) : Value();
}

Value isBlank(Evaluator&, const Value& self, const Bound&)
{
    const std::string& bytes = self.text().bytes();
    return Value::boolean(!bytes.empty() && stripped(bytes, true, false).begin == bytes.size());
}

Value dictItems(Evaluator& evaluator, const Value& self, const Bound&)
{
    Items out;
    for (const auto& [key, value] : self.pairs())
        out.push_back(evaluator.makeList({key, value}, Kind::Tuple));
    return evaluator.makeList(std::move(out));
}

template <bool keys>
Value dictHalf(Evaluator& evaluator, const Value& self, const Bound&)
{
    Items out;
    for (const auto& [key, value] : self.pairs())
        out.push_back(keys ? key : value);
    return evaluator.makeList(std::move(out));
}

Value dictGet(Evaluator& evaluator, const Value& self, const Bound& in)
{
    if (in[0] == nullptr)
        return evaluator.fail("get() takes a name");
    if (!evaluator.spend(self.pairs().size()))
        return {};
    const Value* found = self.find(*in[0]);
    return found != nullptr ? *found : in[1] != nullptr ? *in[1] : Value::none();
}

Value itself(Evaluator&, const Value& self, const Bound&)
{
    return self;
}

constexpr std::array<MethodEntry, 21> kTextMethods{{{"strip", "chars", &strip<true, true>},
    {"lstrip", "chars", &strip<true, false>}, {"rstrip", "chars", &strip<false, true>},
    {"upper", "", &withLetters<Letters::Upper>}, {"lower", "", &withLetters<Letters::Lower>},
    {"title", "", &withLetters<Letters::Title>}, {"capitalize", "", &withLetters<Letters::Capital>},
    {"split", "sep maxsplit", &split<false>}, {"rsplit", "sep maxsplit", &split<true>},
    {"splitlines", "keepends", &splitLines}, {"startswith", "prefix", &hasEnd<true>},
    {"endswith", "suffix", &hasEnd<false>}, {"removeprefix", "prefix", &removeEnd<true>},
    {"removesuffix", "suffix", &removeEnd<false>}, {"replace", "old new count", &replaceIn},
    {"find", "sub", &find<false>}, {"rfind", "sub", &find<true>}, {"count", "sub", &count},
    {"join", "iterable", &joinAll}, {"isdigit", "", &isAll<'0', '9'>}, {"isspace", "", &isBlank}}};

constexpr std::array<MethodEntry, 5> kDictMethods{
    {{"items", "", &dictItems}, {"keys", "", &dictHalf<true>}, {"values", "", &dictHalf<false>},
        {"get", "key default", &dictGet}, {"copy", "", &itself}}};

// Methods Python has and this does not: refused by name, so that none reads as undefined.
constexpr std::array<std::string_view, 26> kOtherText{"casefold", "center", "encode", "expandtabs",
    "format_map", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isidentifier", "islower",
    "isnumeric", "isprintable", "istitle", "isupper", "ljust", "maketrans", "partition", "rindex",
    "rjust", "rpartition", "swapcase", "translate", "zfill", "__class__"};
constexpr std::array<std::string_view, 7> kOtherDict{
    "clear", "fromkeys", "pop", "popitem", "setdefault", "update", "__class__"};
constexpr std::array<std::string_view, 12> kOtherList{"append", "clear", "copy", "count", "extend",
    "index", "insert", "pop", "remove", "reverse", "sort", "__class__"};

template <typename Table>
const MethodEntry* entry(const Table& table, std::string_view name)
{
    const auto found = std::find_if(
        table.begin(), table.end(), [name](const MethodEntry& e) { return e.name == name; });
    return found == table.end() ? nullptr : &*found;
}

template <typename Names>
bool holds(const Names& names, std::string_view name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

bool isMethod(Kind kind, std::string_view name, bool& known) noexcept
{
    const bool text = kind == Kind::String;
    const bool dict = kind == Kind::Dict;
    known = (text && (name == "format" || entry(kTextMethods, name) != nullptr)) ||
            (dict && entry(kDictMethods, name) != nullptr);
    const bool list = kind == Kind::List || kind == Kind::Tuple;
    return known || (text && holds(kOtherText, name)) || (dict && holds(kOtherDict, name)) ||
           (list && holds(kOtherList, name));
}

namespace {

// Methods of an escaped text: their results are escaped, too.
Value asMarkup(Evaluator& evaluator, const Value& made)
{
    if (made.is(Kind::String))
        return Value::markup(made.text());
    if (!made.is(Kind::List))
        return made;
    Items items;
    for (const Value& item : made.items())
        items.push_back(Value::markup(item.text()));
    return evaluator.makeList(std::move(items));
}

// Versions of MarkupSafe differ in whether these escape their argument, so it must not matter.
bool isSameInAllVersions(const MethodEntry& found, const Value* lookedFor)
{
    const bool differs = found.name.ends_with("strip") || found.run == &replaceIn;
    return !differs || lookedFor == nullptr || !lookedFor->is(Kind::String) ||
           lookedFor->isMarkup() ||
           lookedFor->text().bytes().find_first_of("&<>'\"") == std::string::npos;
}

Value runOnMarkup(Evaluator& evaluator, const MethodEntry& found, const Value& self, Bound given)
{
    if (!given.empty() && !isSameInAllVersions(found, given[0]))
        return evaluator.fail(std::string(found.name) +
                              "() of an escaped text (|safe, |e) is not supported where its "
                              "argument has one of & < > ' \"");
    Value escapedOne;
    Items escapedAll;
    if (found.run == &replaceIn && given[1] != nullptr && given[1]->is(Kind::String)) {
        escapedOne = Value::string(escapedText(*given[1]));
        given[1] = &escapedOne;
    }
    if (found.run == &joinAll && given[0] != nullptr) {
        for (const Value& item : evaluator.iterate(*given[0]))
            escapedAll.push_back(item.is(Kind::String) ? Value::string(escapedText(item)) : item);
        escapedOne = evaluator.makeList(std::move(escapedAll));
        given[0] = &escapedOne;
    }
    if (evaluator.failed() || !evaluator.spend(8 * self.weight()))
        return {};
    return asMarkup(evaluator, found.run(evaluator, self, given));
}

} // namespace

Value runMethod(Evaluator& evaluator, const BoundMethod& method, const Arguments& arguments)
{
    if (method.name == "format")
        return formatBraces(evaluator, method.self, arguments);
    const bool text = method.self.is(Kind::String);
    const MethodEntry* const found =
        text ? entry(kTextMethods, method.name) : entry(kDictMethods, method.name);
    const Bound given = evaluator.bind(method.name, found->parameters, arguments);
    if (evaluator.failed())
        return {};
    return method.self.isMarkup() ? runOnMarkup(evaluator, *found, method.self, given)
                                  : found->run(evaluator, method.self, given);
}

} // namespace mr::tpl
