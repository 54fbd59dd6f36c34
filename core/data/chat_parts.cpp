#include "core/data/chat_parts.h"

#include "core/base/shown_text.h"
#include "core/data/chat_thoughts.h"
#include "core/data/conversation_forms.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTellingBytes = 32;

std::size_t indexOf(ChatPart part) noexcept
{
    return static_cast<std::size_t>(part);
}

std::string contentText(const Json& message)
{
    return joinedText(message["content"]);
}

bool hasRole(const Json& message, std::string_view role)
{
    return message["role"] == role;
}

bool hasCalls(const Json& message)
{
    return message.contains("tool_calls") && !message["tool_calls"].empty();
}

bool hasReasoning(const Json& message)
{
    const bool field = message.contains("reasoning_content") &&
                       !trimmedText(message["reasoning_content"].get<std::string>()).empty();
    return field || !thoughtIn(contentText(message)).thought.empty();
}

// Another thought in the place of each one that is there.
void alterReasoning(Json& message)
{
    constexpr const char* kMore = " millrace";
    for (const char* const name : kReasoningFields)
        if (message.contains(name) && message[name].is_string())
            message[name] = message[name].get<std::string>() + kMore;
    std::string text = contentText(message);
    if (const std::size_t end = text.rfind(kThoughtEnd); end != std::string::npos)
        message["content"] = text.insert(end, kMore);
}

void eraseReasoning(Json& message)
{
    for (const char* const name : kReasoningFields)
        message.erase(name);
    const Thought inside = thoughtIn(contentText(message));
    if (!inside.thought.empty())
        message["content"] = inside.answer;
}

// Leaves the messages that `keep` says, and moves the places of untrained answers.
template <typename Keep>
void keepMessages(Json& variables, const Keep& keep)
{
    Json messages = Json::array();
    Json untrained = Json::array();
    for (std::size_t i = 0; i < variables["messages"].size(); ++i) {
        Json& message = variables["messages"][i];
        if (!keep(message))
            continue;
        if (hasRole(message, "assistant") && !isTrainedAnswer(variables, i))
            untrained.push_back(messages.size());
        messages.push_back(message);
    }
    variables["messages"] = std::move(messages);
    variables.erase("untrained");
    if (!untrained.empty())
        variables["untrained"] = std::move(untrained);
}

void dropCalls(Json& variables)
{
    keepMessages(variables, [](Json& message) {
        const bool called = message.erase("tool_calls") > 0;
        return !hasRole(message, "tool") && !(called && trimmedText(contentText(message)).empty());
    });
}

ChatParts partsIn(const Json& variables)
{
    ChatParts out;
    out[indexOf(ChatPart::Tools)] = variables.contains("tools");
    for (std::size_t i = 0; i < variables["messages"].size(); ++i) {
        const Json& message = variables["messages"][i];
        const bool said = !trimmedText(contentText(message)).empty();
        if (hasRole(message, "system") && said)
            out.set(indexOf(ChatPart::System));
        if (hasCalls(message) || (hasRole(message, "tool") && said))
            out.set(indexOf(ChatPart::ToolCalls));
        if (isTrainedAnswer(variables, i) && hasReasoning(message))
            out.set(indexOf(ChatPart::Reasoning));
    }
    return out;
}

// Looks for each part of one conversation in the text that a template writes.
class PartSearch
{
public:
    PartSearch(const Json& variables, const RenderChat& render, std::string whole)
        : m_variables(variables)
        , m_render(render)
        , m_whole(std::move(whole))
    {
    }

    bool isLost(ChatPart part, std::size_t message) const
    {
        const Json& one = m_variables["messages"][message];
        switch (part) {
        case ChatPart::System:
            return hasRole(one, "system") && textIsLost(message);
        case ChatPart::Tools:
            return message == 0 && toolsAreLost();
        case ChatPart::ToolCalls:
            return hasRole(one, "tool") ? textIsLost(message)
                                        : hasCalls(one) && callsAreLost(message);
        case ChatPart::Reasoning:
            return isTrainedAnswer(m_variables, message) && hasReasoning(one) &&
                   reasoningIsLost(message);
        }
        return false;
    }

private:
    bool writesAlike(const Json& other, const std::string& text) const
    {
        Result<RenderedChat> out = m_render(other, false);
        return out.ok() && out.value().text() == text;
    }

    bool textIsLost(std::size_t message) const
    {
        const std::string text = trimmedText(contentText(m_variables["messages"][message]));
        const bool isLong = text.size() >= kTellingBytes; // shorter ones stand anywhere
        if (text.empty() || (isLong && m_whole.find(text) != std::string::npos))
            return false;
        Json other = m_variables;
        other["messages"][message]["content"] = text + "millrace";
        return writesAlike(other, m_whole);
    }

    bool toolsAreLost() const
    {
        Json other = m_variables;
        return other.erase("tools") > 0 && writesAlike(other, m_whole);
    }

    // Some templates write the calls and leave the text beside them out.
    bool callsAreLost(std::size_t message) const
    {
        if (textIsLost(message))
            return true;
        Json other = m_variables;
        other["messages"][message].erase("tool_calls");
        return writesAlike(other, m_whole);
    }

    // At the time of the answer: later ones make many templates leave old thoughts out.
    bool reasoningIsLost(std::size_t message) const
    {
        Json then = m_variables;
        Json& list = then["messages"];
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(message) + 1, list.end());
        Result<RenderedChat> out = m_render(then, false);
        if (!out.ok())
            return false;
        const std::string text = out.value().text();
        alterReasoning(list[message]);
        return writesAlike(then, text);
    }

    const Json& m_variables;
    const RenderChat& m_render;
    std::string m_whole;
};

// Without which part a refused conversation is written; nothing where it is refused anyway.
ChatParts refusedParts(const Json& variables, ChatParts present, const RenderChat& render)
{
    const auto isTaken = [&](ChatParts dropped) {
        Json other = variables;
        dropParts(dropped, other);
        return !other["messages"].empty() && render(other, false).ok();
    };
    for (std::size_t part = 0; part < kChatParts; ++part)
        if (present[part] && isTaken(ChatParts().set(part)))
            return ChatParts().set(part);
    return isTaken(present) ? present : ChatParts();
}

} // namespace

const std::array<PartWords, kChatParts> kPartWords{
    {{"system", "system texts"}, {"tools", "lists of tools"},
        {"tool-calls", "calls of tools, their results or texts beside them"},
        {"reasoning", "reasoning of the assistant"}}};

Result<ChatParts> partsToDrop(const DataSource& source)
{
    ChatParts out;
    const auto found = source.columns.find(std::string(kDropKey));
    if (found == source.columns.end())
        return out;
    std::string_view rest = found->second;
    for (;;) {
        const std::string_view name = rest.substr(0, rest.find('+'));
        const auto word = std::find_if(kPartWords.begin(), kPartWords.end(),
            [&](const PartWords& one) { return one.name == name; });
        if (word == kPartWords.end())
            return Status::error(ErrorKind::InvalidArgument,
                source.path + ": --map drop=" + shownName(name) +
                    " is not known; drop=system, tools, tool-calls or reasoning leaves that part "
                    "of conversations out, several are joined by +");
        out.set(static_cast<std::size_t>(word - kPartWords.begin()));
        if (name.size() == rest.size())
            return out;
        rest.remove_prefix(name.size() + 1);
    }
}

bool isTrainedAnswer(const Json& variables, std::size_t message)
{
    if (!hasRole(variables["messages"][message], "assistant"))
        return false;
    const auto untrained = variables.find("untrained");
    return untrained == variables.end() ||
           std::find(untrained->begin(), untrained->end(), message) == untrained->end();
}

void dropParts(ChatParts parts, Json& variables)
{
    if (parts[indexOf(ChatPart::Tools)])
        variables.erase("tools");
    if (parts[indexOf(ChatPart::System)])
        keepMessages(variables, [](const Json& message) { return !hasRole(message, "system"); });
    if (parts[indexOf(ChatPart::ToolCalls)])
        dropCalls(variables);
    if (parts[indexOf(ChatPart::Reasoning)])
        for (Json& message : variables["messages"])
            if (hasRole(message, "assistant"))
                eraseReasoning(message);
}

ChatParts unwrittenParts(const Json& variables, const RenderChat& render)
{
    const ChatParts present = partsIn(variables);
    if (present.none())
        return present;
    Result<RenderedChat> whole = render(variables, false);
    if (!whole.ok())
        return refusedParts(variables, present, render);
    const PartSearch search(variables, render, whole.value().text());
    ChatParts out;
    for (std::size_t part = 0; part < kChatParts; ++part)
        for (std::size_t i = 0; present[part] && i < variables["messages"].size(); ++i)
            if (search.isLost(static_cast<ChatPart>(part), i)) {
                out.set(part);
                break;
            }
    return out;
}

} // namespace mr
