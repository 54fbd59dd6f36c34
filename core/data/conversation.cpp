#include "core/data/conversation.h"

#include "core/api/json_text.h"
#include "core/data/columns.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kSpeakers{
    {{"system", "system"}, {"developer", "system"}, {"user", "user"}, {"human", "user"},
        {"assistant", "assistant"}, {"gpt", "assistant"}, {"bot", "assistant"},
        {"chatgpt", "assistant"}, {"model", "assistant"}, {"function_call", "call"},
        {"tool_call", "call"}, {"tool", "tool"}, {"observation", "tool"}, {"function", "tool"}}};

Status badConversation(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

Status badMessage(std::size_t index, const std::string& message)
{
    return badConversation(
        "message " + std::to_string(index + 1) + " of the conversation " + message);
}

const Json* field(const Json& message, std::string_view name, std::string_view other)
{
    for (const std::string_view key : {name, other})
        if (const auto found = message.find(key); found != message.end())
            return &*found;
    return nullptr;
}

// A text, nothing, or a list of parts that are all text: templates for text read the joined text.
Status readContent(const Json& content, std::size_t index, std::string& out)
{
    if (content.is_null())
        return {};
    if (content.is_string()) {
        out = content.get<std::string>();
        return {};
    }
    if (!content.is_array())
        return badMessage(index, "has content that is not text");
    for (const Json& part : content) {
        const Json* const text = part.is_object() ? field(part, "text", "value") : nullptr;
        const Json* const type = part.is_object() ? field(part, "type", "type") : nullptr;
        if (text == nullptr || !text->is_string() || (type != nullptr && *type != "text"))
            return badMessage(index, "has a part that is not text; only text can be trained");
        out += text->get<std::string>();
    }
    return {};
}

// JSON inside a text; discarded where it is none, or nests without measure.
Json parseInner(const std::string& text)
{
    return nestsTooDeeply(text) ? Json(Json::value_t::discarded)
                                : Json::parse(text, nullptr, false);
}

// Arguments that are JSON inside a text become what the text says, as templates write them as JSON.
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

// What a message counts for in the loss: 0 or 1; 1 where nothing is said.
Status readWeight(const Json& message, std::size_t index, bool& trained)
{
    trained = true;
    const Json* const weight = field(message, "weight", "loss_weight");
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

Status readMessage(const Json& message, std::size_t index, Json& out)
{
    const Json* const role = message.is_object() ? field(message, "role", "from") : nullptr;
    if (role == nullptr || !role->is_string())
        return badMessage(index, R"(has no "role" (or "from"))");
    std::string_view known;
    for (const auto& [name, meaning] : kSpeakers)
        if (*role == name)
            known = meaning;
    if (known.empty())
        return badMessage(index, "has the role " + shownName(role->get<std::string>()) +
                                     "; known are system, user, assistant and tool");
    const Json* const content = field(message, "content", "value");
    const bool calls = message.contains("tool_calls") && message["tool_calls"].is_array();
    if (content == nullptr && !calls)
        return badMessage(index, R"(has no "content" (or "value"))");
    std::string text;
    if (content != nullptr)
        MR_TRY(readContent(*content, index, text));
    out = {
        {"role", known == "call" ? "assistant" : known}, {"content", known == "call" ? "" : text}};
    if (known == "call")
        return readCall(text, index, out);
    for (const auto& [name, value] : message.items())
        if (!out.contains(name) && name != "from" && name != "value" && name != "tool_calls" &&
            name != "weight" && name != "loss_weight")
            out[name] = value;
    if (calls)
        for (const Json& call : message["tool_calls"])
            out["tool_calls"].push_back(plainArguments(call));
    return {};
}

// Somebody asks first.
Status checkOrder(const Json& messages)
{
    bool asked = false;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const std::string role = messages[i]["role"].get<std::string>();
        if (role == "system" && i > 0)
            return badMessage(i, "is a system message, which can only be the first");
        if ((role == "assistant" || role == "tool") && !asked)
            return badMessage(i,
                "is of \"" + role + "\" before anything of the user; an answer needs a question");
        asked |= role == "user";
    }
    return {};
}

} // namespace

Result<Json> readConversation(const ConversationCells& cells)
{
    const Json given = parseInner(cells.messages);
    if (!given.is_array())
        return badConversation("the conversation is not a list of messages");
    Json out = {{"messages", Json::array()}};
    Json& messages = out["messages"]; // until something else is put into `out`
    Json untrained = Json::array();
    if (!cells.system.empty())
        messages.push_back({{"role", "system"}, {"content", cells.system}});
    for (std::size_t i = 0; i < given.size(); ++i) {
        Json message;
        MR_TRY(readMessage(given[i], i, message));
        bool trained = true;
        MR_TRY(readWeight(given[i], i, trained));
        if (!trained && message["role"] == "assistant")
            untrained.push_back(messages.size());
        messages.push_back(std::move(message));
    }
    MR_TRY(checkOrder(messages));
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
            return badConversation("has turn " + std::to_string(out.size() + 1) +
                                   " in another form than [question, answer]");
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
