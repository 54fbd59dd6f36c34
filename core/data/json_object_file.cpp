#include "core/data/json_object_file.h"

#include "core/base/shown_text.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <vector>

namespace mr {
namespace {

// Names that published files give to their list of rows; beside one of these a text describes the
// file.
constexpr std::array<std::string_view, 12> kListNames{"data", "rows", "train", "examples",
    "instances", "items", "records", "samples", "entries", "dataset", "questions", "test"};

enum class Holds : std::uint8_t { Nothing, Rows, Messages, Lists, Values };

struct Seen {
    JsonMember member;
    Holds holds = Holds::Nothing; // lists: the kind of the first element

    bool isNamedAsList() const
    {
        return std::find(kListNames.begin(), kListNames.end(), member.key) != kListNames.end();
    }
    // A row has texts and lists of its own; a list of rows has objects, or conversations.
    bool mayBeRows() const
    {
        return holds == Holds::Rows || holds == Holds::Lists ||
               (holds == Holds::Values && isNamedAsList());
    }
};

bool isMessage(simdjson::dom::object object)
{
    const auto has = [&](const char* key) { return !object[key].error(); };
    return (has("role") || has("from")) &&
           (has("content") || has("value") || has("parts") || has("text") || has("tool_calls"));
}

Holds holdsOf(const std::string& first)
{
    simdjson::dom::parser parser;
    simdjson::dom::element element;
    if (parser.parse(first).get(element) != simdjson::SUCCESS)
        return Holds::Values;
    if (element.is_object())
        return isMessage(element.get_object().value_unsafe()) ? Holds::Messages : Holds::Rows;
    simdjson::dom::array list;
    if (element.get(list) != simdjson::SUCCESS)
        return Holds::Values;
    const bool objects =
        list.size() > 0 && std::all_of(list.begin(), list.end(), [](const auto& e) {
            return e.type() == simdjson::dom::element_type::OBJECT;
        });
    return objects ? Holds::Lists : Holds::Values;
}

// The first element of the list that begins here; the rest is skipped.
Result<Holds> lookAtList(ByteSource& source, JsonScanner& scanner)
{
    source.take();
    scanner.skipWhite();
    std::string first;
    const std::int64_t line = source.line();
    bool cut = scanner.value(']', &first);
    while (cut && source.take() == ',')
        cut = scanner.value(']', nullptr);
    MR_TRY(source.status());
    if (!cut)
        return jsonError(source.path(), line, "not valid JSON: the list is not closed");
    return first.empty() ? Holds::Nothing : holdsOf(first);
}

Result<std::vector<Seen>> lookAtMembers(ByteSource& source)
{
    JsonScanner scanner(source);
    scanner.skipWhite();
    JsonMembers members(source);
    std::vector<Seen> out;
    Seen seen;
    Result<bool> more = members.next(seen.member);
    for (; more.ok() && more.value(); more = members.next(seen.member)) {
        seen.holds = Holds::Nothing;
        if (seen.member.begins == '[') {
            Result<Holds> holds = lookAtList(source, scanner);
            MR_TRY(holds.status());
            seen.holds = holds.value();
        } else {
            MR_TRY(members.skip());
        }
        if (out.size() < kMaxColumns)
            out.push_back(seen);
    }
    MR_TRY(more.status());
    return out;
}

std::string namesOf(const std::vector<Seen>& members, bool (*wanted)(const Seen&))
{
    std::string out;
    for (const Seen& seen : members)
        if (wanted(seen))
            out += (out.empty() ? "" : ", ") + shownName(seen.member.key);
    return out;
}

Status refuse(const std::filesystem::path& path, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, path.string() + ": " + message);
}

} // namespace

Status JsonMembers::error(const std::string& message) const
{
    return jsonError(m_source.path(), m_source.line(), "not valid JSON: " + message);
}

Result<bool> JsonMembers::next(JsonMember& out)
{
    m_scanner.skipWhite();
    const int c = m_source.take();
    if (c == '}')
        return false;
    if (c != (m_begun ? ',' : '{'))
        return error("a comma or } is missing in the object");
    m_scanner.skipWhite();
    if (!m_begun && m_source.peek() == '}') {
        m_source.take();
        return false;
    }
    m_begun = true;
    if (m_source.peek() != '"')
        return error("a name in quotes is missing in the object");
    std::string quoted;
    m_source.take();
    for (int k = m_source.take(); k != '"'; k = m_source.take()) {
        if (k == ByteSource::kEnd || quoted.size() > ByteSource::kMaxRecordBytes)
            return error("a name in quotes is not closed");
        quoted.push_back(static_cast<char>(k));
        if (k == '\\' && m_source.peek() != ByteSource::kEnd)
            quoted.push_back(static_cast<char>(m_source.take()));
    }
    out.key = std::move(quoted);
    m_scanner.skipWhite();
    if (m_source.take() != ':')
        return error("a colon is missing behind " + shownName(out.key));
    m_scanner.skipWhite();
    out.begins = static_cast<char>(m_source.peek());
    return true;
}

// Members that are left out must be JSON, too: a damaged file is not read in part. A list may be
// too long to be parsed as one.
Status JsonMembers::skip()
{
    const bool list = m_source.peek() == '[';
    std::string text;
    const bool cut = m_scanner.value('}', list ? nullptr : &text);
    MR_TRY(m_source.status());
    if (!cut)
        return error("the file ends inside a value");
    simdjson::dom::parser parser;
    if (!list && parser.parse(text).error() != simdjson::SUCCESS)
        return error("a value of the object is damaged");
    return {};
}

Result<JsonObjectFile> lookAtJsonObject(const std::filesystem::path& path)
{
    MR_ASSIGN(ByteSource source, ByteSource::open(path));
    MR_ASSIGN(std::vector<Seen> read, lookAtMembers(source));
    const std::vector<Seen>& members = read;
    const auto rows = [](const Seen& s) { return s.mayBeRows(); };
    const auto named = [](const Seen& s) { return s.mayBeRows() && s.isNamedAsList(); };
    const auto hasText = [](const Seen& s) { return s.member.begins == '"'; };
    const auto isList = [](const Seen& s) { return s.member.begins == '['; };
    const auto count = [&](auto wanted) {
        return std::count_if(members.begin(), members.end(), wanted);
    };
    if (count(rows) > 1 && (count(hasText) == 0 || count(named) > 1))
        return refuse(path, "holds several lists of rows (" + namesOf(members, rows) +
                                "); put the one to be used into a file of its own");
    const auto only = std::find_if(members.begin(), members.end(), rows);
    const bool alone = count(isList) == 1;
    if (only != members.end() &&
        (named(*only) ? alone || only->holds == Holds::Rows : alone && count(hasText) == 0))
        return JsonObjectFile{only->member.key};
    if (count(isList) == static_cast<std::ptrdiff_t>(members.size()) && members.size() > 1 &&
        count([](const Seen& s) { return s.holds == Holds::Values; }) > 1)
        return refuse(path, "holds columns as lists (" + namesOf(members, isList) +
                                "), not rows; write a list of objects, one per row (pandas: "
                                "to_json(orient=\"records\"))");
    return JsonObjectFile{};
}

} // namespace mr
