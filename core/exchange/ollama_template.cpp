#include "core/exchange/ollama_template.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

// One message, as role and content.
using Turn = std::pair<std::string_view, std::string_view>;

Json messagesOf(const std::vector<Turn>& turns)
{
    Json messages = Json::array();
    for (const Turn& turn : turns)
        messages.push_back({{"role", turn.first}, {"content", turn.second}});
    return messages;
}

// With the prompt for an answer, and without the begin of text.
Result<std::string> promptOf(const ChatFormat& format, const Json& messages, std::string_view bos)
{
    MR_ASSIGN(const RenderedChat chat, format.write(Json{{"messages", messages}}, true));
    std::string text = chat.text();
    return !bos.empty() && text.starts_with(bos) ? text.substr(bos.size()) : text;
}

// The texts before each of the contents, and the one behind the last; empty: a content is missing
// or stands there twice.
std::vector<std::string> textsBetween(const std::string& whole, const std::vector<Turn>& turns)
{
    std::vector<std::string> texts;
    std::size_t at = 0;
    for (const Turn& turn : turns) {
        const std::size_t found = whole.find(turn.second, at);
        if (found == std::string::npos || whole.find(turn.second, found + 1) != std::string::npos)
            return {};
        texts.push_back(whole.substr(at, found - at));
        at = found + turn.second.size();
    }
    texts.push_back(whole.substr(at));
    return texts;
}

// Letters that templates neither trim nor look for.
constexpr std::array<Turn, 4> kTurns = {{{"system", "QsystemQ"}, {"user", "Qfirst questionQ"},
    {"assistant", "QanswerQ"}, {"user", "Qsecond questionQ"}}};

bool readPlain(const std::vector<std::string>& texts, OllamaTemplate& out)
{
    if (texts.size() != 4)
        return false;
    out.firstUser = texts[0];
    out.userAfterSystem = texts[0];
    out.assistant = texts[1];
    out.user = texts[2];
    out.ending = texts[3];
    return true;
}

// These turns behind a system text.
bool readSystem(const std::vector<std::string>& texts, OllamaTemplate& out)
{
    if (texts.size() != 5 || texts[2] != out.assistant || texts[3] != out.user ||
        texts[4] != out.ending)
        return false;
    out.takesSystem = true;
    out.system = texts[0];
    out.userAfterSystem = texts[1];
    return true;
}

std::vector<Json> otherConversations(bool takesSystem)
{
    const Turn question{"user", "Add {{ 2 }} and 3.\n\n- one\n- two"};
    const Turn answer{"assistant", "5.\nThat is all."};
    const Turn thanks{"user", "Thanks. And \"7\"?"};
    const Turn system{"system", "You are a miller.\nAnswer in one line."};
    std::vector<std::vector<Turn>> chats = {
        {question}, {question, answer, thanks}, {question, answer, thanks, answer, question}};
    if (takesSystem)
        for (std::size_t i = 0; i < 3; ++i) {
            chats.push_back(chats[i]);
            chats.back().insert(chats.back().begin(), system);
        }
    std::vector<Json> out;
    for (const std::vector<Turn>& chat : chats)
        out.push_back(messagesOf(chat));
    return out;
}

// Text that the template language takes as it is.
std::string literal(const std::string& text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.compare(i, 2, "{{") == 0) {
            out += R"({{ "{{" }})";
            ++i;
        } else {
            out += text[i];
        }
    }
    return out;
}

} // namespace

std::string OllamaTemplate::text() const
{
    std::string begin = literal(user);
    if (firstUser != user || userAfterSystem != user) {
        begin = "{{ if eq $i 0 }}" + literal(firstUser);
        if (userAfterSystem != user)
            begin += "{{ else if and $.System (eq $i 1) }}" + literal(userAfterSystem);
        begin += "{{ else }}" + literal(user) + "{{ end }}";
    }
    std::string out = "{{ range $i, $m := .Messages }}";
    if (takesSystem)
        out += R"({{ if eq $m.Role "system" }})" + literal(system) +
               R"({{ $m.Content }}{{ else if eq $m.Role "user" }})";
    else
        out += R"({{ if eq $m.Role "user" }})";
    return out + begin + R"({{ $m.Content }}{{ else if eq $m.Role "assistant" }})" +
           literal(assistant) + "{{ $m.Content }}{{ end }}{{ end }}" + literal(ending);
}

std::string OllamaTemplate::render(const Json& messages) const
{
    const bool hasSystem = !messages.empty() && messages[0]["role"] == "system";
    std::string out;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const std::string role = messages[i]["role"];
        if (role == "system" && !takesSystem)
            continue;
        if (role == "user")
            out += i == 0 ? firstUser : i == 1 && hasSystem ? userAfterSystem : user;
        else
            out += role == "system" ? system : assistant;
        out += messages[i]["content"].get<std::string>();
    }
    return out + ending;
}

Result<std::optional<OllamaTemplate>> learnOllamaTemplate(
    const ChatFormat& format, std::string_view bos)
{
    const std::vector<Turn> withSystem(kTurns.begin(), kTurns.end());
    const std::vector<Turn> plain(kTurns.begin() + 1, kTurns.end());
    OllamaTemplate learned;
    MR_ASSIGN(const std::string first, promptOf(format, messagesOf(plain), bos));
    if (!readPlain(textsBetween(first, plain), learned))
        return std::optional<OllamaTemplate>();
    if (format.takesSystem()) {
        MR_ASSIGN(const std::string second, promptOf(format, messagesOf(withSystem), bos));
        if (!readSystem(textsBetween(second, withSystem), learned))
            return std::optional<OllamaTemplate>();
    }
    for (const Json& messages : otherConversations(learned.takesSystem)) {
        MR_ASSIGN(const std::string want, promptOf(format, messages, bos));
        if (learned.render(messages) != want)
            return std::optional<OllamaTemplate>();
    }
    return std::optional(std::move(learned));
}

} // namespace mr
