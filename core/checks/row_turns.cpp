#include "core/checks/row_turns.h"

#include "core/data/conversation.h"
#include "core/data/white_space.h"

#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

TurnRole roleOf(const Json& message)
{
    const std::string role = message.value("role", "");
    if (role == "assistant")
        return TurnRole::Assistant;
    if (role == "system" || role == "developer")
        return TurnRole::System;
    return role == "tool" ? TurnRole::Tool : TurnRole::User;
}

std::string contentOf(const Json& message)
{
    const auto content = message.find("content");
    if (content == message.end())
        return {};
    if (content->is_string())
        return content->get<std::string>();
    std::string out;
    if (content->is_array())
        for (const Json& part : *content)
            if (part.is_object() && part.contains("text") && part["text"].is_string())
                out += part["text"].get<std::string>();
    return out;
}

void addConversation(const Json& conversation, std::vector<RowTurn>& out)
{
    const auto messages = conversation.find("messages");
    if (messages == conversation.end() || !messages->is_array())
        return;
    for (const Json& message : *messages) {
        const auto calls = message.find("tool_calls");
        out.push_back({roleOf(message), contentOf(message),
            calls != message.end() && calls->is_array() && !calls->empty()});
    }
}

void addPair(const Document& document, std::vector<RowTurn>& out)
{
    if (!document.system.empty())
        out.push_back({TurnRole::System, document.system});
    for (const ChatTurn& turn : document.history) {
        out.push_back({TurnRole::User, turn.question});
        out.push_back({TurnRole::Assistant, turn.answer});
    }
    out.push_back({TurnRole::User, document.prompt});
    out.push_back({TurnRole::Assistant, document.response});
}

bool isBlank(std::string_view text) noexcept
{
    return text.find_first_not_of(kWhite) == std::string_view::npos;
}

} // namespace

std::vector<RowTurn> turnsOf(const Document& document)
{
    std::vector<RowTurn> out;
    if (!document.chat.empty()) {
        addConversation(Json::parse(document.chat, nullptr, false), out);
    } else if (document.isPair) {
        addPair(document, out);
    } else if (!document.goesOn && isChatMl(document.text)) {
        Result<std::vector<Json>> read = readChatMl(document.text);
        if (read.ok())
            for (const Json& conversation : read.value())
                addConversation(conversation, out);
    } else {
        out.push_back({TurnRole::Text, document.text});
    }
    return out;
}

std::string_view emptyTurn(const std::vector<RowTurn>& turns) noexcept
{
    for (const RowTurn& turn : turns) {
        if (!isBlank(turn.text) || turn.calls)
            continue;
        if (turn.role == TurnRole::Assistant)
            return "an answer is empty";
        if (turn.role == TurnRole::User)
            return "a question is empty";
        if (turn.role == TurnRole::Text)
            return "the text is empty";
    }
    return {};
}

std::string_view wrongOrder(const std::vector<RowTurn>& turns) noexcept
{
    if (turns.empty() || turns.front().role == TurnRole::Text)
        return {};
    TurnRole last = TurnRole::System; // of the turns but system texts
    bool called = false;
    bool began = false;
    for (const RowTurn& turn : turns) {
        if (turn.role == TurnRole::System) {
            if (began)
                return "a system text stands behind other turns";
            continue;
        }
        if (turn.role == TurnRole::Assistant && !began)
            return "an answer stands before any question";
        if (turn.role == TurnRole::Tool && !called)
            return "a tool's result stands behind no call";
        if (turn.role == TurnRole::User && last == TurnRole::User)
            return "two questions follow each other";
        if (turn.role == TurnRole::Assistant && last == TurnRole::Assistant)
            return "two answers follow each other";
        called = turn.calls || (turn.role == TurnRole::Tool && called);
        began = true;
        last = turn.role;
    }
    return last == TurnRole::User || last == TurnRole::Tool ? "nothing answers the last turn"
                                                            : std::string_view();
}

} // namespace mr
