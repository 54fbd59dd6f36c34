#include "core/data/unwritten_rows.h"

#include <fmt/format.h>

namespace mr {

void UnwrittenRows::add(ChatParts parts, const RowPlace& at)
{
    for (std::size_t part = 0; part < kChatParts; ++part)
        if (parts[part] && rows[part]++ == 0)
            first[part].at = at;
}

void UnwrittenRows::setPath(const std::string& path)
{
    for (Place& place : first)
        if (place.at.row > 0 && place.path.empty())
            place.path = path;
}

void UnwrittenRows::append(const UnwrittenRows& later)
{
    for (std::size_t part = 0; part < kChatParts; ++part) {
        rows[part] += later.rows[part];
        if (first[part].at.row == 0)
            first[part] = later.first[part];
    }
}

Status UnwrittenRows::check(std::uint64_t all) const
{
    std::string what;
    std::string drop;
    const Place* place = nullptr;
    for (std::size_t part = 0; part < kChatParts; ++part) {
        if (rows[part] == 0)
            continue;
        const std::string count = fmt::format("{} of {}", rows[part], all);
        what += (what.empty() ? "" : ", ") + std::string(kPartWords[part].meaning) + " (" + count +
                " rows)";
        drop += (drop.empty() ? "" : "+") + std::string(kPartWords[part].name);
        if (place == nullptr)
            place = &first[part];
    }
    if (place == nullptr)
        return {};
    return dataError(place->path, place->at,
        fmt::format("the chat template does not write all of the conversations, and "
                    "what it leaves out would be trained as if it had not been there: {}. Give "
                    "another template with --chat-template (chatml, llama3 or a file), or leave "
                    "those parts out with --map drop={}",
            what, drop));
}

} // namespace mr
