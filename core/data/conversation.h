// A conversation of a data file in one form, whatever the file calls its parts.
//
//     messages:      [{"role": "user", "content": ...}, ...]
//     conversations: [{"from": "human", "value": ...}, ...]      (ShareGPT)
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument says which message is wrong and what would be right; the caller adds
//          file and line.

#pragma once

#include <millrace/status.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mr {

// The JSON texts of one row; `tools` and `system` may be empty.
struct ConversationCells {
    std::string messages;
    std::string tools;
    std::string system; // what stands in a column of its own goes before the messages
};

// {"messages": [...], "tools": [...]} as chat templates expect it: roles system, user, assistant
// and tool, content a text, calls of tools with their arguments as objects. Refuses roles that are
// not known, a system message in the middle, an answer without a question before it, content that
// is not text, and a conversation in which nobody answers.
Result<nlohmann::ordered_json> readConversation(const ConversationCells& cells);

} // namespace mr
