#include "core/data/chat_habits.h"

#include "core/data/chat_thoughts.h"
#include "core/data/conversation_forms.h"
#include "core/data/white_space.h"
#include "core/template/value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

// Words that no template holds.
constexpr const char* kQuestion = "millracequestion";
constexpr const char* kAnswer = "millraceanswer";
constexpr const char* kNext = "millracenext";
constexpr const char* kArgument = "millraceargument";
constexpr const char* kThinking = "millracethought";

Json message(const char* role, Json content)
{
    return {{"role", role}, {"content", std::move(content)}};
}

Json chat(std::initializer_list<Json> messages)
{
    Json list = Json::array();
    for (const Json& one : messages)
        list.push_back(one);
    return {{"messages", std::move(list)}};
}

// Empty: refused.
std::string written(const RenderChat& render, const Json& variables, bool prompt = false)
{
    Result<RenderedChat> out = render(variables, prompt);
    return out.ok() ? out.value().text() : std::string();
}

bool holds(const std::string& text, std::string_view word)
{
    return text.find(word) != std::string::npos;
}

Json asParts(const std::string& text)
{
    return Json::array({{{"type", "text"}, {"text", text}}});
}

bool writesContent(const std::string& text)
{
    return holds(text, kQuestion) && holds(text, kAnswer) && !holds(text, "'type'") &&
           !holds(text, "\"type\"");
}

void findContent(const RenderChat& render, ChatHabits& habits)
{
    habits.readsParts = writesContent(written(render,
        chat({message("user", asParts(kQuestion)), message("assistant", asParts(kAnswer))})));
    habits.readsTexts = !habits.readsParts ||
                        writesContent(written(render,
                            chat({message("user", kQuestion), message("assistant", kAnswer)})));
}

// A call with its arguments, as templates see one: nine characters are the ids of Mistral.
std::string writtenCall(const RenderChat& render, const Json& arguments)
{
    Json call = message("assistant", "");
    call["tool_calls"] = Json::array({{{"id", "call00001"}, {"type", "function"},
        {"function", {{"name", "probe"}, {"arguments", arguments}}}}});
    Json result = message("tool", "1");
    result["tool_call_id"] = "call00001";
    result["name"] = "probe";
    return written(
        render, chat({message("user", kQuestion), call, result, message("assistant", kAnswer)}));
}

void findArguments(const RenderChat& render, ChatHabits& habits)
{
    const std::string object = writtenCall(render, {{"key", kArgument}});
    if (holds(object, kArgument) && !holds(object, "{'key'"))
        return;
    const std::string text = writtenCall(render, Json{{"key", kArgument}}.dump());
    habits.readsArgumentTexts = holds(text, kArgument);
}

std::size_t countOf(std::string_view text, std::string_view word)
{
    std::size_t count = 0;
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + word.size()))
        ++count;
    return count;
}

// The thought as a part in front of the answer's own.
void moveThoughtToParts(Json& message)
{
    Json parts = Json::array();
    parts.push_back({{"type", "thinking"}, {"thinking", message["reasoning_content"]}});
    const Json content = message["content"];
    for (const Json& part : content.is_array() ? content : asParts(content.get<std::string>()))
        parts.push_back(part);
    message["content"] = std::move(parts);
    for (const char* const name : kReasoningFields)
        message.erase(name);
}

bool hasThought(const Json& message)
{
    const auto found = message.find("reasoning_content");
    return found != message.end() && found->is_string() && !found->get<std::string>().empty();
}

// No part of it is a thought by itself.
bool isTextOnly(const Json& content)
{
    return content.is_string() || std::all_of(content.begin(), content.end(),
                                      [](const Json& part) { return part.contains("text"); });
}

bool isThoughtFirst(std::string_view text)
{
    text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
    return text.starts_with(kThoughtBegin);
}

void findThoughts(const RenderChat& render, ChatHabits& habits)
{
    const auto writtenWith = [&](const Json& answer) {
        return written(render, adapted(chat({message("user", kQuestion), answer}), habits));
    };
    Json answer = message("assistant", kAnswer);
    answer["reasoning_content"] = answer["thinking"] = kThinking;
    std::string own = writtenWith(answer);
    if (habits.readsParts && !holds(own, kThinking)) {
        habits.readsThoughtParts = true;
        own = writtenWith(answer);
        habits.readsThoughtParts = holds(own, kThinking) && writesContent(own);
    }
    if (!holds(own, kThinking))
        return;
    const std::string inside = writtenWith(
        message("assistant", std::string("<think>\n") + kThinking + "\n</think>\n\n" + kAnswer));
    habits.keepsInnerThoughts = countOf(inside, kThoughtEnd) > countOf(own, kThoughtEnd);
}

// The text behind `from`, up to `to`; to the end where that is empty. Nothing where one is missing.
std::string between(const std::string& text, const std::string& from, const std::string& to)
{
    const std::size_t begin = text.find(from);
    const std::size_t end = to.empty() ? text.size() : text.find(to);
    if (begin == std::string::npos || end == std::string::npos || end < begin + from.size())
        return {};
    return text.substr(begin + from.size(), end - begin - from.size());
}

std::size_t commonSuffix(const std::string& a, const std::string& b)
{
    return static_cast<std::size_t>(
        std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
}

// `last`, the text behind the last answer, holds the prompt for the next one if `middle`, the text
// behind an earlier answer, does not begin with it. The answer then ends at the first special token
// that both begin with; without one, where the end begins that `last` shares with `before`, the
// text in front of an answer.
void findEnd(const std::string& before, const std::string& middle, const std::string& last,
    const std::map<std::string, std::string>& tokens, ChatHabits& habits)
{
    const std::size_t most = commonPrefix(middle, last);
    const std::size_t least = last.size() - commonSuffix(before, last);
    std::size_t end = std::string::npos;
    for (const auto& [name, token] : tokens)
        if (const std::size_t at = last.find(token); !token.empty() && at != std::string::npos)
            if (at + token.size() <= most)
                end = std::min(end, at + token.size());
    if (end == std::string::npos && least > 0 && least <= most)
        end = least;
    habits.endIsUnclear = end == std::string::npos;
    if (!habits.endIsUnclear)
        habits.unasked = last.substr(end);
}

// A conversation with only as much in front of the question as the template insists on.
Json usualStart(const RenderChat& render, const ChatHabits& habits)
{
    const Json plain = chat({});
    const Json system = chat({message("system", "millracesystem")});
    const auto isWritten = [&](Json variables) {
        variables["messages"].push_back(message("user", kQuestion));
        variables["messages"].push_back(message("assistant", kAnswer));
        return !written(render, adapted(std::move(variables), habits)).empty();
    };
    return isWritten(plain) || !isWritten(system) ? plain : system;
}

void findAsking(const RenderChat& render, Json variables, ChatHabits& habits)
{
    variables["messages"].push_back(message("user", kQuestion));
    const std::string asked = written(render, adapted(variables, habits), true);
    variables["messages"].push_back(message("assistant", kAnswer));
    const std::string plain = written(render, adapted(variables, habits));
    habits.asking = between(asked, kQuestion, {});
    const std::size_t begin = commonPrefix(asked, plain);
    const std::size_t content = plain.find(kAnswer);
    if (content != std::string::npos && begin <= content)
        habits.opening = plain.substr(begin, content - begin);
}

void findUnasked(const RenderChat& render, const std::map<std::string, std::string>& tokens,
    Json variables, ChatHabits& habits)
{
    variables["messages"].push_back(message("user", kQuestion));
    variables["messages"].push_back(message("assistant", kAnswer));
    const std::string plain = written(render, adapted(variables, habits));
    const std::string asked = written(render, adapted(variables, habits), true);
    variables["messages"].push_back(message("user", kNext));
    const std::string longer = written(render, adapted(variables, habits));
    const std::string last = between(plain, kAnswer, {});
    const std::string middle = between(longer, kAnswer, kNext);
    if (plain != asked || middle.empty() || middle.starts_with(last))
        return;
    findEnd(between(longer, kQuestion, kAnswer), middle, last, tokens, habits);
}

// As Python writes it.
std::string jsonText(const Json& json)
{
    std::string out;
    const Result<tpl::Value> value = tpl::fromJson(json);
    const bool written = value.ok() && tpl::writeJson(Result(value).value(), {}, out).ok();
    return written ? out : json.dump();
}

void adaptThoughts(Json& message, const ChatHabits& habits)
{
    if (habits.keepsInnerThoughts && !hasThought(message) && isTextOnly(message["content"])) {
        const std::string text = joinedText(message["content"]);
        const Thought inside = thoughtIn(text);
        if (isThoughtFirst(text) && !inside.thought.empty()) {
            message["reasoning_content"] = message["thinking"] = inside.thought;
            message["content"] = inside.answer;
        }
    }
    if (habits.readsThoughtParts && hasThought(message))
        moveThoughtToParts(message);
}

void adaptCalls(Json& message)
{
    for (Json& call : message["tool_calls"]) {
        Json& inner = call.contains("function") ? call["function"] : call;
        if (inner.is_object() && inner.contains("arguments") && inner["arguments"].is_object())
            inner["arguments"] = jsonText(inner["arguments"]);
    }
}

} // namespace

std::size_t commonPrefix(std::string_view a, std::string_view b) noexcept
{
    return static_cast<std::size_t>(
        std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

ChatHabits findHabits(const RenderChat& render, const std::map<std::string, std::string>& tokens)
{
    ChatHabits habits;
    findContent(render, habits);
    findArguments(
        [&](const Json& v, bool prompt) { return render(adapted(v, habits), prompt); }, habits);
    findThoughts(render, habits);
    const Json start = usualStart(render, habits);
    findAsking(render, start, habits);
    findUnasked(render, tokens, start, habits);
    return habits;
}

Json adapted(Json variables, const ChatHabits& habits)
{
    for (Json& message : variables["messages"]) {
        if (message["role"] == "assistant")
            adaptThoughts(message, habits);
        Json& content = message["content"];
        if (content.is_array() && !habits.readsParts)
            content = joinedText(content);
        else if (content.is_string() && !habits.readsTexts)
            content = asParts(content.get<std::string>());
        if (habits.readsArgumentTexts && message.contains("tool_calls"))
            adaptCalls(message);
    }
    return variables;
}

} // namespace mr
