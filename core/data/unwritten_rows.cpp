#include "core/data/unwritten_rows.h"

#include <fmt/format.h>

namespace mr {

void UnwrittenRows::add(ChatParts parts, std::int64_t line)
{
    for (std::size_t part = 0; part < kChatParts; ++part)
        if (parts[part] && rows[part]++ == 0)
            first[part].line = line;
}

void UnwrittenRows::setPath(const std::string& path)
{
    for (Place& place : first)
        if (place.line > 0 && place.path.empty())
            place.path = path;
}

void UnwrittenRows::append(const UnwrittenRows& later)
{
    for (std::size_t part = 0; part < kChatParts; ++part) {
        rows[part] += later.rows[part];
        if (first[part].line == 0)
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
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("{}, line {}: the chat template does not write all of the conversations, and "
                    "what it leaves out would be trained as if it had not been there: {}. Give "
                    "another template with --chat-template (chatml, llama3 or a file), or leave "
                    "those parts out with --map drop={}",
            place->path, place->line, what, drop));
}

} // namespace mr
