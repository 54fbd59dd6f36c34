// A conversation of a data file in one form, under any names that the file gives its parts.
//
//     a list of messages or turns            (conversation_forms.h)
//     <|im_start|>user\n...<|im_end|>        (ChatML, a text)
//     a prompt and its response
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument names the message that is wrong and the right form; the caller adds
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
    std::string system; // goes before the messages
};

// {"messages": [...], "tools": [...]} as chat templates expect it: roles system, user, assistant
// and tool, content a text or a list of text parts, calls of tools with their arguments as objects,
// reasoning under both names that templates read. The forms that are taken: conversation_forms.h.
// Refuses roles that are not known and content that is not text. A conversation may be empty, or
// nobody may answer: then nothing is trained.
// "weight" or "loss_weight" 0 of an answer puts its index into "untrained"; weights other than 0
// and 1 are refused.
Result<nlohmann::ordered_json> readConversation(const ConversationCells& cells);

// A question and its answer.
struct ChatTurn {
    std::string question;
    std::string answer;
};

// Turns as a conversation; `system` may be empty.
nlohmann::ordered_json pairConversation(
    const std::string& system, const std::vector<ChatTurn>& turns);
// [[question, answer], ...] as JSON; an empty text is no turn. InvalidArgument: something else.
Result<std::vector<ChatTurn>> readHistory(const std::string& text);
// The messages of both sides of a pair as one list; a text is one message of the user, or of the
// assistant. Answers of the prompt's side are written and not trained.
struct PairSide {
    std::string text;
    bool isList = false; // JSON
};
Result<nlohmann::ordered_json> joinSides(
    const PairSide& prompt, const PairSide& response, const std::string& tools);

// Whether a text begins with a message of ChatML, white space and ends of text apart.
bool isChatMl(std::string_view text) noexcept;
// Its conversations: a new one begins with every system message and behind every end of text
// ("<|endoftext|>"). Refuses markers that do not belong together.
Result<std::vector<nlohmann::ordered_json>> readChatMl(std::string_view text);

} // namespace mr
