// A conversation of a data file in one form, whatever the file calls its parts.
//
//     messages:      [{"role": "user", "content": ...}, ...]
//     conversations: [{"from": "human", "value": ...}, ...]      (ShareGPT)
//     <|im_start|>user\n...<|im_end|>                            (ChatML, a text)
//     a prompt and its response
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument says which message is wrong and what would be right; the caller adds
//          file and line.

#pragma once

#include <millrace/status.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

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
// is not text, and a conversation in which nobody answers. "weight" or "loss_weight" 0 of an
// answer puts its index into "untrained"; weights other than 0 and 1 are refused.
Result<nlohmann::ordered_json> readConversation(const ConversationCells& cells);

// One question and its answer.
nlohmann::ordered_json pairConversation(const std::string& prompt, const std::string& response);

// Whether a text begins with a message of ChatML, white space and ends of text apart.
bool isChatMl(std::string_view text) noexcept;
// Its conversations: a new one begins with every system message and behind every end of text
// ("<|endoftext|>"). Refuses markers that do not belong together.
Result<std::vector<nlohmann::ordered_json>> readChatMl(std::string_view text);

} // namespace mr
