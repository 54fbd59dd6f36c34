#include "core/data/conversation.h"

#include "core/api/json_text.h"
#include "core/base/shown_text.h"
#include "core/data/chat_thoughts.h"
#include "core/data/conversation_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 6> kMedia{
    "image", "images", "video", "videos", "audio", "audios"};
// Fields that are read here and not handed on under their names.
constexpr std::array<std::string_view, 10> kRead{"from", "value", "speaker", "parts", "message",
    "text", "tool_calls", "function_call", "weight", "loss_weight"};

Status badConversation(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

// JSON inside a text; discarded where it is none, or nests without measure.
Json parseInner(const std::string& text)
{
    return nestsTooDeeply(text) ? Json(Json::value_t::discarded)
                                : Json::parse(text, nullptr, false);
}

// Parses arguments that are JSON inside a text, because templates write them as JSON themselves.
Json plainArguments(const Json& call)
{
    Json out = call;
    Json& inner = out.contains("function") ? out["function"] : out;
    if (!inner.is_object() || !inner.contains("arguments") || !inner["arguments"].is_string())
        return out;
    Json parsed = parseInner(inner["arguments"].get<std::string>());
    if (parsed.is_object())
        inner["arguments"] = std::move(parsed);
    return out;
}

// ShareGPT's function_call: its text is the call as JSON.
Status readCall(const std::string& text, std::size_t index, Json& out)
{
    Json call = parseInner(text);
    const Json calls = call.is_array() ? call : Json::array({call});
    for (const Json& one : calls) {
        if (!one.is_object() || !one.contains("name"))
            return badMessage(index, R"(should call a tool ({"name": ..., "arguments": ...}))");
        out["tool_calls"].push_back({{"type", "function"}, {"function", plainArguments(one)}});
    }
    return {};
}

// The weight of a message in the loss: 0 or 1; 1 where the message names none.
Status readWeight(const Json& message, std::size_t index, bool& trained)
{
    trained = true;
    const Json* const weight = firstOf(message, {"weight", "loss_weight"});
    if (weight == nullptr || weight->is_null())
        return {};
    const bool flag = weight->is_boolean();
    const double value = flag                  ? (weight->get<bool>() ? 1.0 : 0.0)
                         : weight->is_number() ? weight->get<double>()
                                               : -1.0;
    if (value != 0.0 && value != 1.0)
        return badMessage(index,
            "has the weight " + weight->dump() + "; 0 (not trained) and 1 (trained) are supported");
    trained = value == 1.0;
    return {};
}

// Fields beside role and content; an absent value (null) is no field.
Status readFields(const Json& message, std::size_t index, Json& out)
{
    for (const char* const name : kMedia)
        if (message.contains(name) && !message[name].is_null() && !message[name].empty() &&
            message[name] != "")
            return badMessage(index, std::string("has \"") + name + "\"; only text can be trained");
    for (const auto& [name, value] : message.items())
        if (!out.contains(name) && !value.is_null() &&
            std::find(kRead.begin(), kRead.end(), name) == kRead.end())
            out[name] = value;
    for (const char* const name : kReasoningFields) {
        if (!out.contains(name))
            continue;
        const Json reasoning = out[name];
        if (!reasoning.is_string())
            return badMessage(index, std::string("has a \"") + name + "\" that is not text");
        if (!out.contains("thinking"))
            out["thinking"] = reasoning;
        out["reasoning_content"] = reasoning;
        break;
    }
    return {};
}

// Calls of tools; a single "function_call" is the older form of a call.
Json callsOf(const Json& message)
{
    Json out = Json::array();
    if (message.contains("tool_calls") && message["tool_calls"].is_array())
        for (const Json& call : message["tool_calls"])
            out.push_back(plainArguments(call));
    if (out.empty() && message.contains("function_call") && message["function_call"].is_object())
        out.push_back(
            {{"type", "function"}, {"function", plainArguments(message["function_call"])}});
    return out;
}

// Takes the thoughts out of an assistant's list of parts; they are texts, or lists of text parts.
Status takeThoughts(Json& content, std::size_t index, std::string& thought)
{
    Json kept = Json::array();
    for (const Json& part : content) {
        const bool isThought =
            part.is_object() && part.contains("type") && part["type"] == "thinking";
        if (!isThought) {
            kept.push_back(part);
            continue;
        }
        MR_ASSIGN(const Json text, readContent(part.value("thinking", Json()), index));
        thought += joinedText(text);
    }
    content = std::move(kept);
    return {};
}

Status readMessage(Json message, std::size_t index, Json& out)
{
    const Json* const role = roleOf(message);
    if (role == nullptr || !role->is_string())
        return badMessage(index, R"(has no "role" (or "from"))");
    const std::string_view known = speakerOf(role->get<std::string>());
    if (known.empty())
        return badMessage(index, "has the role " + shownName(role->get<std::string>()) +
                                     "; known are system, user, assistant and tool");
    if (known == "assistant" && message.contains("content") && message["content"].is_array()) {
        std::string thought;
        MR_TRY(takeThoughts(message["content"], index, thought));
        const bool hasOther = std::ranges::any_of(kReasoningFields,
            [&](const char* name) { return firstOf(message, {name}) != nullptr; });
        if (!thought.empty() && hasOther)
            return badMessage(index, "has a thought in its content and another one beside it");
        if (!thought.empty())
            message["reasoning_content"] = thought;
    }
    const Json* const content = contentOf(message);
    Json calls = callsOf(message);
    if (content == nullptr && calls.empty())
        return badMessage(index, R"(has no "content" (or "value"))");
    if (content != nullptr && hasTwoContents(message))
        return badMessage(index, R"(has two different texts under "content", "value", "parts", )"
                                 R"("message" or "text"; leave one of them)");
    MR_ASSIGN(Json text, readContent(content != nullptr ? *content : Json(), index));
    const bool isCall = known == "call";
    const bool isForm = content != nullptr && message.contains("content");
    out = {{"role", isCall ? "assistant" : known}, {"content", ""}};
    if (isCall)
        return readCall(joinedText(text), index, out);
    out["content"] = isForm ? text : Json(joinedText(text));
    if (!calls.empty())
        out["tool_calls"] = std::move(calls);
    return readFields(message, index, out);
}

// A system text in a column of its own goes before the messages.
Status addSystem(const std::string& text, const Json& given, Json& messages)
{
    if (text.empty())
        return {};
    const Json* const role = given.empty() ? nullptr : roleOf(given[0]);
    const bool twice =
        role != nullptr && role->is_string() && speakerOf(role->get<std::string>()) == "system";
    if (!twice) {
        messages.push_back({{"role", "system"}, {"content", text}});
        return {};
    }
    const Json* const content = contentOf(given[0]);
    if (content != nullptr && *content == text)
        return {};
    return badMessage(0, "is a system text beside another one in a column of its own; leave one of "
                         "them out");
}

} // namespace

Result<Json> readConversation(const ConversationCells& cells)
{
    const Json given = parseInner(cells.messages);
    if (!given.is_array())
        return badConversation("the conversation is not a list of messages");
    Result<Json> list = asMessages(given);
    MR_TRY(list.status());
    Json out = {{"messages", Json::array()}};
    Json& messages = out["messages"]; // until something else is put into `out`
    Json untrained = Json::array();
    MR_TRY(addSystem(cells.system, list.value(), messages));
    for (std::size_t i = 0; i < list.value().size(); ++i) {
        Json message;
        MR_TRY(readMessage(list.value()[i], i, message));
        bool trained = true;
        MR_TRY(readWeight(list.value()[i], i, trained));
        if (!trained && message["role"] == "assistant")
            untrained.push_back(messages.size());
        messages.push_back(std::move(message));
    }
    if (!untrained.empty())
        out["untrained"] = std::move(untrained);
    if (cells.tools.empty())
        return out;
    Json tools = parseInner(cells.tools);
    if (!tools.is_array())
        return badConversation("the tools of the conversation are not a list");
    if (!tools.empty())
        out["tools"] = std::move(tools);
    return out;
}

Json pairConversation(const std::string& system, const std::vector<ChatTurn>& turns)
{
    Json messages = Json::array();
    if (!system.empty())
        messages.push_back({{"role", "system"}, {"content", system}});
    for (const ChatTurn& turn : turns) {
        messages.push_back({{"role", "user"}, {"content", turn.question}});
        messages.push_back({{"role", "assistant"}, {"content", turn.answer}});
    }
    return {{"messages", std::move(messages)}};
}

Result<std::vector<ChatTurn>> readHistory(const std::string& text)
{
    std::vector<ChatTurn> out;
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        return out;
    const Json given = parseInner(text);
    if (!given.is_array())
        return badConversation("is not a list of turns");
    for (const Json& turn : given) {
        if (!turn.is_array() || turn.size() != 2 || !turn[0].is_string() || !turn[1].is_string())
            return badConversation(
                fmt::format("has turn {} in another form than [question, answer]", out.size() + 1));
        out.push_back({turn[0].get<std::string>(), turn[1].get<std::string>()});
    }
    return out;
}

Result<Json> joinSides(const PairSide& prompt, const PairSide& response, const std::string& tools)
{
    Json all = Json::array();
    for (const PairSide* side : {&prompt, &response}) {
        const bool isPrompt = side == &prompt;
        Json list =
            Json::array({{{"role", isPrompt ? "user" : "assistant"}, {"content", side->text}}});
        if (side->isList)
            list = parseInner(side->text);
        if (!list.is_array())
            return badConversation(std::string("the ") + (isPrompt ? "prompt" : "response") +
                                   " is neither a text nor a list of messages");
        for (Json& message : list) {
            if (isPrompt && message.is_object())
                message["weight"] = 0;
            all.push_back(std::move(message));
        }
    }
    return readConversation({all.dump(), tools, {}});
}

} // namespace mr
