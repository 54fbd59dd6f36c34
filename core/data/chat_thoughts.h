// Thoughts of an assistant in a text: before an answer, between marks.
//
// Threads  Functions of their arguments.

#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mr {

// The text without white space around it.
std::string trimmedText(const std::string& text);

// Names of an assistant's thoughts before its answer. Templates read the first or the second;
// transformers fills both from the first name that a message has, in this order.
inline constexpr std::array<const char*, 3> kReasoningFields{
    "reasoning_content", "thinking", "reasoning"};

// The reasoning in an answer's text stands between these.
inline constexpr std::string_view kThoughtBegin = "<think>";
inline constexpr std::string_view kThoughtEnd = "</think>";
inline constexpr std::string_view kNoThink = "/no_think";

// A thought that stands in the text of an answer, and the answer behind it.
struct Thought {
    std::string thought;
    std::string answer;
};
Thought thoughtIn(const std::string& text);
// Whether an answer, as it is trained, begins with a thought that holds nothing.
bool beginsWithEmptyThought(std::string_view trained) noexcept;

// Whether a question holds "/no_think", which asks some models for an answer without a thought.
bool holdsNoThink(const nlohmann::ordered_json& variables);

} // namespace mr
