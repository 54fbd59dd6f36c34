// Rows of which the chat template leaves something out, counted.
//
// Threads  Values.
// Errors   check(): InvalidArgument.

#pragma once

#include "core/data/chat_parts.h"
#include "core/data/record_reader.h"

#include <array>
#include <cstdint>
#include <string>

namespace mr {

// Rows that have such parts, and where the first of them stands.
struct UnwrittenRows {
    struct Place {
        std::string path;
        RowPlace at; // row 0: there is none
    };
    std::array<std::uint64_t, kChatParts> rows{};
    std::array<Place, kChatParts> first;

    void add(ChatParts parts, const RowPlace& at);
    void setPath(const std::string& path); // applies to rows added since the last call
    void append(const UnwrittenRows& later);
    // InvalidArgument: there are some; with their number of `all` and the way out.
    Status check(std::uint64_t all) const;
};

} // namespace mr
