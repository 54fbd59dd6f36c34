#include "core/data/chat_thoughts.h"

#include "core/data/conversation_forms.h"
#include "core/data/white_space.h"

#include <algorithm>
#include <array>

namespace mr {

std::string trimmedText(const std::string& text)
{
    const std::size_t begin = text.find_first_not_of(kWhite);
    if (begin == std::string::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(kWhite) + 1 - begin);
}

Thought thoughtIn(const std::string& text)
{
    const std::size_t end = text.rfind(kThoughtEnd);
    if (end == std::string::npos)
        return {{}, text};
    std::string thought = text.substr(0, end);
    if (const std::size_t begin = thought.find(kThoughtBegin); begin != std::string::npos)
        thought.erase(0, begin + kThoughtBegin.size());
    const std::string answer = text.substr(end + kThoughtEnd.size());
    const std::size_t first = answer.find_first_not_of(kWhite);
    return {
        trimmedText(thought), first == std::string::npos ? std::string() : answer.substr(first)};
}

bool beginsWithEmptyThought(std::string_view trained) noexcept
{
    // As templates open and close one; a prompt may have opened it already.
    constexpr std::array<std::array<std::string_view, 2>, 4> kMarks{
        {{kThoughtBegin, kThoughtEnd}, {"[THINK]", "[/THINK]"}, {"<seed:think>", "</seed:think>"},
            {"<|channel|>analysis<|message|>", "<|end|>"}}};
    const auto skipWhite = [](std::string_view text) {
        text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
        return text;
    };
    return std::any_of(kMarks.begin(), kMarks.end(), [&](const auto& marks) {
        std::string_view rest = skipWhite(trained);
        if (rest.starts_with(marks[0]))
            rest = skipWhite(rest.substr(marks[0].size()));
        return rest.starts_with(marks[1]);
    });
}

bool holdsNoThink(const Json& variables)
{
    return std::any_of(
        variables["messages"].begin(), variables["messages"].end(), [](const Json& message) {
            return message["role"] == "user" &&
                   joinedText(message["content"]).find(kNoThink) != std::string::npos;
        });
}

} // namespace mr
