// The forms in which data files hold a conversation, as one list of messages.
//
//     [{"role": "user", "content": ...}, ...]              OpenAI
//     [{"from": "human", "value": ...}, ...]               ShareGPT
//     [{"role": "user", "parts": [{"text": ...}]}, ...]    Gemini
//     [{"role": "Chatbot", "message": ...}, ...]           Cohere
//     [{"human": ..., "assistant": ...}, ...]              ms-swift; {"input", "output"}: Capybara
//     ["question", "answer", ...]                          LIMA, UltraChat
//
// Threads  Pure functions.
// Errors   InvalidArgument names the message.

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mr {

// "message N of the conversation ..."; `index` from 0.
Status badMessage(std::size_t index, const std::string& message);

// A message for each element, or two for each turn. Elements that are messages already come back as
// they are. InvalidArgument: trees of replies (OpenAssistant).
Result<nlohmann::ordered_json> asMessages(const nlohmann::ordered_json& given);

// The value under the first of `keys` that the message has; null pointer: none.
const nlohmann::ordered_json* firstOf(
    const nlohmann::ordered_json& message, std::initializer_list<std::string_view> keys);

// "system", "user", "assistant", "call" (an assistant's call of a tool as JSON in its text) or
// "tool" for a role by any of its usual names, in any capitals; empty: not known.
std::string_view speakerOf(std::string_view role);

// The role and the content under any of their usual keys; null pointers where there are none.
const nlohmann::ordered_json* roleOf(const nlohmann::ordered_json& message);
const nlohmann::ordered_json* contentOf(const nlohmann::ordered_json& message);
// Whether two of those keys hold different things, so that it is not certain which is meant.
bool hasTwoContents(const nlohmann::ordered_json& message);

// A text, or a list of texts as [{"type": "text", "text": ...}, ...]. InvalidArgument: pictures,
// sound and everything else that is not text.
Result<nlohmann::ordered_json> readContent(
    const nlohmann::ordered_json& content, std::size_t index);

// A content as one text.
std::string joinedText(const nlohmann::ordered_json& content);

} // namespace mr
