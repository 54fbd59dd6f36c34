#include "core/api/json_text.h"

#include "core/api/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace mr {

namespace {

using nlohmann::json;

// Looks only: the values are made by the library afterwards.
class Examiner : public nlohmann::json_sax<json>
{
public:
    std::string why;
    std::size_t position = 0;
    bool syntax = false;

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return enter(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool end_array() override { return leave(); }

    bool key(string_t& name) override
    {
        if (m_keys.back().insert(name).second)
            return true;
        why = "the key " + shown(name) + " appears twice in one object";
        return false;
    }

    bool parse_error(
        std::size_t at, const std::string&, const nlohmann::detail::exception&) override
    {
        position = at;
        syntax = true;
        return false;
    }

private:
    bool enter()
    {
        m_keys.emplace_back();
        if (m_keys.size() <= kJsonDepth)
            return true;
        why = fmt::format("nested deeper than {} levels", kJsonDepth);
        return false;
    }

    bool leave()
    {
        m_keys.pop_back();
        return true;
    }

    std::vector<std::set<std::string>> m_keys; // keys of the objects that are open
};

} // namespace

bool nestsTooDeeply(std::string_view text) noexcept
{
    std::size_t depth = 0;
    bool inText = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"')
            inText = !inText;
        else if (inText)
            i += c == '\\' ? 1 : 0;
        else if (c == '{' || c == '[')
            ++depth;
        else if (c == '}' || c == ']')
            depth -= depth > 0 ? 1 : 0;
        if (depth > kJsonDepth)
            return true;
    }
    return false;
}

std::string jsonPlace(std::string_view text, std::size_t position)
{
    const std::string_view before = text.substr(0, std::min(position, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t lineBegin = before.rfind('\n');
    const std::size_t column =
        before.size() - (lineBegin == std::string_view::npos ? 0 : lineBegin + 1);
    return fmt::format("line {}, column {}", line, column);
}

Result<nlohmann::json> parseJson(std::string_view text, const std::string& source)
{
    // The library takes a raw NUL for the end of the text and would ignore the rest.
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
        return Status::error(ErrorKind::DataCorrupt,
            source + ": not JSON: a NUL byte at " + jsonPlace(text, nul + 1));
    Examiner examiner;
    if (!json::sax_parse(text.begin(), text.end(), &examiner)) {
        if (examiner.syntax)
            return Status::error(ErrorKind::DataCorrupt,
                source + ": not JSON: an error at " + jsonPlace(text, examiner.position));
        return Status::error(ErrorKind::DataCorrupt, source + ": " + examiner.why);
    }
    json value = json::parse(text.begin(), text.end(), nullptr, false);
    if (value.is_discarded())
        return Status::error(ErrorKind::DataCorrupt, source + ": not JSON");
    return value;
}

} // namespace mr
