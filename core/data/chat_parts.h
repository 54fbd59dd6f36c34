// Parts of a conversation that a chat template may leave out: found by rendering with and without
// them, and dropped where the user says so.
//
// A template without calls of tools writes an assistant that calls one as an assistant that says
// nothing; a model trained on that learns to say nothing.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument: a name that is not one of a part.

#pragma once

#include "core/data/chat_template.h"
#include "core/data/columns.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>

namespace mr {

enum class ChatPart : std::uint8_t { System, Tools, ToolCalls, Reasoning };
inline constexpr std::size_t kChatParts = 4;
using ChatParts = std::bitset<kChatParts>;

// The parts that `source` lists under kDropKey.
Result<ChatParts> partsToDrop(const DataSource& source);
// The words of the option and of a message.
struct PartWords {
    std::string_view name;
    std::string_view meaning;
};
extern const std::array<PartWords, kChatParts> kPartWords;

// Whether `message` is an answer that is trained.
bool isTrainedAnswer(const nlohmann::ordered_json& variables, std::size_t message);

// `variables` without `parts`: without the system texts, the list of tools, the calls of tools with
// their results and the answers that were nothing else, the reasoning.
void dropParts(ChatParts parts, nlohmann::ordered_json& variables);

// Parts that are present and that `render` leaves out; if it refuses the conversation, the parts to
// drop so that it does not.
ChatParts unwrittenParts(const nlohmann::ordered_json& variables, const RenderChat& render);

} // namespace mr
