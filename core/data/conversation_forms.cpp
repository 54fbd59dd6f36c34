#include "core/data/conversation_forms.h"

#include "core/data/untrainable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::pair<std::string_view, std::string_view>;

constexpr std::array<Names, 33> kSpeakers{{{"system", "system"}, {"developer", "system"},
    {"user", "user"}, {"human", "user"}, {"prompter", "user"}, {"assistant", "assistant"},
    {"gpt", "assistant"}, {"gpt4", "assistant"}, {"gpt-4", "assistant"}, {"bot", "assistant"},
    {"chatgpt", "assistant"}, {"chatbot", "assistant"}, {"model", "assistant"},
    {"bing", "assistant"}, {"bard", "assistant"}, {"ai", "assistant"}, {"function_call", "call"},
    {"function-call", "call"}, {"functioncall", "call"}, {"tool_call", "call"},
    {"tool-call", "call"}, {"tool", "tool"}, {"observation", "tool"}, {"function", "tool"},
    {"ipython", "tool"}, {"tool_response", "tool"}, {"tool-response", "tool"},
    {"tool_result", "tool"}, {"tool_output", "tool"}, {"function_response", "tool"},
    {"function-response", "tool"}, {"function_result", "tool"}, {"functionresponse", "tool"}}};

// A question and its answer as one element.
constexpr std::array<Names, 13> kTurns{{{"human", "assistant"}, {"user", "assistant"},
    {"input", "output"}, {"question", "answer"}, {"query", "response"}, {"prompt", "response"},
    {"prompt", "completion"}, {"instruction", "output"}, {"instruction", "response"},
    {"human", "gpt"}, {"human", "bot"}, {"user", "bot"}, {"user", "model"}}};

constexpr std::array<std::string_view, 5> kContentKeys{
    "content", "value", "parts", "message", "text"};
constexpr std::array<std::string_view, 3> kTextTypes{"text", "input_text", "output_text"};

bool isTurn(const Json& element, const Names& names)
{
    return element.is_object() && element.size() == 2 && element.contains(names.first) &&
           element.contains(names.second);
}

Json turnsAsMessages(const Json& given, const Names& names)
{
    Json out = Json::array();
    for (const Json& turn : given) {
        out.push_back({{"role", "user"}, {"content", turn[std::string(names.first)]}});
        out.push_back({{"role", "assistant"}, {"content", turn[std::string(names.second)]}});
    }
    return out;
}

Json textsAsMessages(const Json& given)
{
    Json out = Json::array();
    for (const Json& text : given)
        out.push_back({{"role", out.size() % 2 == 0 ? "user" : "assistant"}, {"content", text}});
    return out;
}

template <typename Test>
bool all(const Json& list, const Test& test)
{
    return !list.empty() && std::all_of(list.begin(), list.end(), test);
}

} // namespace

Status badMessage(std::size_t index, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("message {} of the conversation {}", index + 1, message));
}

const Json* firstOf(const Json& message, std::initializer_list<std::string_view> keys)
{
    for (const std::string_view key : keys)
        if (const auto found = message.find(key); found != message.end())
            return &*found;
    return nullptr;
}

const Json* roleOf(const Json& message)
{
    return message.is_object() ? firstOf(message, {"role", "from", "speaker"}) : nullptr;
}

const Json* contentOf(const Json& message)
{
    const Json* found = nullptr;
    for (const std::string_view key : kContentKeys)
        if (const Json* const one = firstOf(message, {key}))
            if (found == nullptr || (found->is_null() && !one->is_null()))
                found = one;
    return found;
}

bool hasTwoContents(const Json& message)
{
    const Json* const content = contentOf(message);
    return std::any_of(kContentKeys.begin(), kContentKeys.end(), [&](std::string_view key) {
        const Json* const other = firstOf(message, {key});
        return other != nullptr && !other->is_null() && *other != *content;
    });
}

std::string_view speakerOf(std::string_view role)
{
    const std::string name = lowerAscii(role);
    const auto found = std::find_if(
        kSpeakers.begin(), kSpeakers.end(), [&](const Names& one) { return one.first == name; });
    return found == kSpeakers.end() ? std::string_view() : found->second;
}

Result<Json> asMessages(const Json& given)
{
    for (std::size_t i = 0; i < given.size(); ++i)
        if (given[i].is_object() && given[i].contains("replies"))
            return badMessage(i, "has \"replies\": a tree of answers as OpenAssistant's, where it "
                                 "is not certain which answers are meant; make each path through "
                                 "the tree a conversation of its own");
    for (const Names& names : kTurns)
        if (all(given, [&](const Json& element) { return isTurn(element, names); }))
            return turnsAsMessages(given, names);
    if (given.size() > 1 && all(given, [](const Json& element) { return element.is_string(); }))
        return textsAsMessages(given);
    return given;
}

Result<Json> readContent(const Json& content, std::size_t index)
{
    if (content.is_null())
        return Json("");
    if (content.is_string())
        return content;
    if (!content.is_array())
        return badMessage(index, "has content that is not text");
    Json out = Json::array();
    for (const Json& part : content) {
        const Json* const text = part.is_string()   ? &part
                                 : part.is_object() ? firstOf(part, {"text", "value"})
                                                    : nullptr;
        const Json* const type = part.is_object() ? firstOf(part, {"type"}) : nullptr;
        const bool isText =
            type == nullptr || std::any_of(kTextTypes.begin(), kTextTypes.end(),
                                   [&](std::string_view known) { return *type == known; });
        if (text == nullptr || !text->is_string() || !isText)
            return badMessage(index, "has a part that is not text; only text can be trained");
        out.push_back({{"type", "text"}, {"text", *text}});
    }
    return out.empty() ? Json("") : out;
}

std::string joinedText(const Json& content)
{
    if (content.is_string())
        return content.get<std::string>();
    std::string out;
    for (const Json& part : content)
        out += part["text"].get<std::string>();
    return out;
}

} // namespace mr
