#include "core/data/cell_value.h"

#include "core/api/json_text.h"
#include "core/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

// "a.b[0]+c[label-1]" in its parts.
struct Term {
    std::vector<std::string> paths;
    std::string selector{};      // "*", or the column that points; empty: the value itself
    std::int64_t firstIndex = 0; // number of the first element in the pointing column
};

std::vector<std::string> split(std::string_view text, char at)
{
    std::vector<std::string> out;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(at, begin), text.size());
        out.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

bool isDigits(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Term readTerm(std::string_view text)
{
    Term out;
    const std::size_t open = text.rfind('[');
    if (open != std::string_view::npos && text.ends_with(']')) {
        std::string_view inner = text.substr(open + 1, text.size() - open - 2);
        if (!isDigits(inner)) {
            out.firstIndex = inner.ends_with("-1") ? 1 : 0;
            inner.remove_suffix(out.firstIndex == 1 ? 2 : 0);
            out.selector = inner;
            text = text.substr(0, open);
        }
    }
    out.paths = split(text, '+');
    return out;
}

std::string rootOf(std::string_view path)
{
    return std::string(path.substr(0, path.find_first_of(".[")));
}

Status bad(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

// The cell as a JSON value; a text stays a text unless something is asked of its inside.
Json valueOf(const Cell& cell, bool isPath)
{
    if (cell.kind == CellKind::Null)
        return {};
    const bool isJson = cell.kind != CellKind::Text || isPath;
    if (!isJson || nestsTooDeeply(cell.text))
        return Json(cell.text);
    Json out = Json::parse(cell.text, nullptr, false);
    return out.is_discarded() ? Json(cell.text) : out;
}

// Follows ".key" and "[n]"; nothing where they lead nowhere.
Json follow(Json value, std::string_view path)
{
    std::size_t at = path.find_first_of(".[");
    while (at < path.size()) {
        const std::size_t next = std::min(path.find_first_of(".[", at + 1), path.size());
        std::string step(path.substr(at + 1, next - at - 1));
        if (path[at] == '[') {
            step.resize(step.find(']') == std::string::npos ? step.size() : step.find(']'));
            std::size_t index = 0;
            (void)std::from_chars(step.data(), step.data() + step.size(), index);
            value = value.is_array() && index < value.size() ? Json(value[index]) : Json();
        } else {
            value = value.is_object() && value.contains(step) ? Json(value[step]) : Json();
        }
        at = next;
    }
    return value;
}

Json resolve(const Record& record, std::string_view path)
{
    const Cell* cell = record.find(path);
    if (cell != nullptr)
        return valueOf(*cell, false);
    cell = record.find(rootOf(path));
    return cell == nullptr ? Json() : follow(valueOf(*cell, true), path);
}

Result<CellText> textOf(const Json& value, std::string_view what)
{
    if (value.is_structured())
        return bad(shownName(what) + " is a list or an object, not text");
    if (value.is_null())
        return CellText{};
    return CellText{true, value.is_string() ? value.get<std::string>() : value.dump()};
}

// The list that a term chooses from: the values of several paths, or a value that is one.
Result<Json> listOf(const Record& record, const Term& term)
{
    Json list = Json::array();
    if (term.paths.size() == 1)
        list = resolve(record, term.paths[0]);
    else
        for (const std::string& path : term.paths)
            list.push_back(resolve(record, path));
    if (list.is_string() && !nestsTooDeeply(list.get_ref<const std::string&>()))
        list = Json::parse(list.get<std::string>(), nullptr, false); // from CSV
    if (!list.is_array() && !list.is_null())
        return bad(shownName(term.paths[0]) + " is not a list");
    return list;
}

Result<CellText> lettered(const Json& list, std::string_view what)
{
    CellText out;
    for (std::size_t i = 0; i < list.size(); ++i) {
        MR_ASSIGN(auto one, textOf(list[i], what));
        if (i >= 26)
            return bad(shownName(what) + " has more than 26 elements");
        out.isThere = true;
        out.text +=
            (i == 0 ? "" : "\n") + std::string(1, static_cast<char>('A' + i)) + ". " + one.text;
    }
    return out;
}

// Labels that stand beside the list: {"text": [...], "label": [...]}.
Json labelsBeside(const Record& record, const Term& term)
{
    const std::size_t dot = term.paths[0].rfind('.');
    return dot == std::string::npos ? Json()
                                    : resolve(record, term.paths[0].substr(0, dot) + ".label");
}

std::optional<std::size_t> placeOf(const Json& list, const Json& wanted)
{
    for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i] == wanted)
            return i;
    return std::nullopt;
}

// A letter, or a number that counts from `firstIndex`.
std::optional<std::size_t> countedPlace(const std::string& text, std::int64_t firstIndex)
{
    if (text.size() == 1 && text[0] >= 'A' && text[0] <= 'Z')
        return static_cast<std::size_t>(text[0] - 'A');
    if (text.size() == 1 && text[0] >= 'a' && text[0] <= 'z')
        return static_cast<std::size_t>(text[0] - 'a');
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number < firstIndex)
        return std::nullopt;
    return static_cast<std::size_t>(number - firstIndex);
}

// Where `pointer` points in a list; nothing: nowhere, or at two places.
std::optional<std::size_t> pointedAt(
    const Json& pointer, const Json& list, const Json& labels, std::int64_t firstIndex)
{
    if (labels.is_array())
        return placeOf(labels, pointer);
    const auto counted =
        countedPlace(pointer.is_string() ? pointer.get<std::string>() : pointer.dump(), firstIndex);
    const auto found = pointer.is_string() ? placeOf(list, pointer) : std::nullopt;
    if (found && counted && *counted < list.size() && *counted != *found)
        return std::nullopt; // "2" of "2", "3", "4" is an element and a place
    return found ? found : counted;
}

Result<CellText> picked(const Record& record, const Term& term, const Json& list)
{
    const Json pointer = resolve(record, term.selector);
    const bool isEmpty = pointer.is_null() || pointer == "" || pointer == -1 || pointer == "-1";
    if (list.is_null() || isEmpty)
        return CellText{};
    const auto at = pointedAt(pointer, list, labelsBeside(record, term), term.firstIndex);
    if (!at || *at >= list.size())
        return bad(fmt::format("{} is {}, which is none of the {} elements of {}",
            shownName(term.selector), shownName(pointer.dump()), list.size(),
            shownName(term.paths[0])));
    return textOf(list[*at], term.paths[0]);
}

Result<CellText> termValue(const Record& record, const Term& term)
{
    if (term.selector.empty() && term.paths.size() == 1)
        return textOf(resolve(record, term.paths[0]), term.paths[0]);
    MR_ASSIGN(Json list, listOf(record, term));
    if (term.selector.empty())
        return bad("a role joins columns with + only to choose one of them: " +
                   shownName(term.paths[0]) + "+...[COLUMN]");
    return term.selector == "*" ? lettered(list, term.paths[0]) : picked(record, term, list);
}

} // namespace

std::vector<NamedPart> partsOf(std::string_view expression)
{
    std::vector<NamedPart> out;
    for (const std::string& part : split(expression, '&')) {
        const Term term = readTerm(part);
        for (const std::string& path : term.paths) {
            const std::string root = rootOf(path);
            const bool hasKey = root.size() < path.size() && path[root.size()] == '.';
            std::string key = hasKey ? path.substr(root.size() + 1) : std::string();
            key.resize(std::min(key.find_first_of(".["), key.size()));
            out.push_back({root, std::move(key)});
        }
        if (!term.selector.empty() && term.selector != "*")
            out.push_back({rootOf(term.selector)});
    }
    return out;
}

std::vector<std::string> columnsOf(
    std::string_view expression, const std::function<bool(std::string_view)>& isColumn)
{
    if (isColumn(expression))
        return {std::string(expression)};
    std::vector<std::string> out;
    for (NamedPart& part : partsOf(expression))
        if (std::find(out.begin(), out.end(), part.column) == out.end())
            out.push_back(std::move(part.column));
    return out;
}

Result<CellText> cellValue(const Record& record, std::string_view expression)
{
    const Cell* const cell = record.find(expression);
    if (cell != nullptr && cell->kind == CellKind::Nested)
        return bad(shownName(expression) + " is a list or an object, not text");
    if (cell != nullptr) // numbers as the file writes them
        return CellText{cell->kind != CellKind::Null, cell->text};
    CellText out;
    if (expression.find_first_of(".[+&") == std::string_view::npos)
        return out;
    for (const std::string& part : split(expression, '&')) {
        MR_ASSIGN(CellText one, termValue(record, readTerm(part)));
        if (!one.isThere)
            continue;
        if (out.isThere && !out.text.empty() && out.text.back() != '\n')
            out.text += '\n';
        out.isThere = true;
        out.text += one.text;
    }
    return out;
}

} // namespace mr
