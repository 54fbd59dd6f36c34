#include "core/data/chat_format.h"

#include "core/base/file.h"
#include "core/data/chat_templates.h"
#include "core/data/tokenizer_habits.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxTemplateBytes = std::uintmax_t{8} << 20;

Status bad(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

// Sources by name; one that stands alone is "default".
using Sources = std::map<std::string, std::string>;

Status readTemplateFile(const fs::path& path, Sources& out)
{
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error || bytes > kMaxTemplateBytes)
        return bad(path.string() + ": cannot be read, or is larger than 8 MiB");
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.good() && !file.eof())
        return Status::error(ErrorKind::Io, path.string() + ": cannot be read");
    out["default"] = std::move(text);
    return {};
}

Status readTemplateField(const fs::path& path, Sources& out)
{
    std::error_code ignored;
    if (!out.empty() || !fs::exists(path, ignored))
        return {};
    Result<nlohmann::json> config = readJsonObject(path);
    if (!config.ok())
        return config.status();
    const auto found = config.value().find("chat_template");
    if (found == config.value().end() || found->is_null())
        return {};
    if (found->is_string()) {
        out["default"] = found->get<std::string>();
        return {};
    }
    for (const auto& named : found->is_array() ? *found : nlohmann::json::array()) {
        const bool sound = named.is_object() && named.contains("name") &&
                           named["name"].is_string() && named.contains("template") &&
                           named["template"].is_string();
        if (!sound)
            return bad(
                path.string() + R"(: "chat_template" holds something without name and template)");
        out[named["name"].get<std::string>()] = named["template"].get<std::string>();
    }
    return {};
}

Status readSources(const fs::path& folder, Sources& out)
{
    std::error_code ignored;
    if (fs::exists(folder / "chat_template.jinja", ignored))
        MR_TRY(readTemplateFile(folder / "chat_template.jinja", out));
    MR_TRY(readTemplateField(folder / "chat_template.json", out));
    return readTemplateField(folder / "tokenizer_config.json", out);
}

// A special token is a text, or an object that holds it.
std::string specialToken(const fs::path& folder, const char* name)
{
    std::error_code ignored;
    const fs::path path = folder / "tokenizer_config.json";
    if (!fs::exists(path, ignored))
        return {};
    Result<nlohmann::json> config = readJsonObject(path);
    if (!config.ok() || !config.value().contains(name))
        return {};
    const nlohmann::json& token = config.value()[name];
    const nlohmann::json& text =
        token.is_object() && token.contains("content") ? token["content"] : token;
    return text.is_string() ? text.get<std::string>() : std::string();
}

// Dates make a run that cannot be repeated; a resumed run must see the same tokens.
std::tm fixedDay()
{
    std::tm day{};
    day.tm_year = 124;
    day.tm_mon = 6;
    day.tm_mday = 26;
    day.tm_wday = 5;
    day.tm_yday = 207;
    return day;
}

// White space behind the end token belongs to the next turn.
std::size_t endOfTurn(const std::string& text, std::size_t begin, std::size_t end)
{
    const std::size_t last = std::string_view(text).substr(0, end).find_last_not_of(" \t\r\n");
    return last == std::string::npos || last < begin ? end : last + 1;
}

// An answer, and one that counts.
bool isTrained(const Json& variables, std::size_t message)
{
    if (variables["messages"][message]["role"] != "assistant")
        return false;
    const auto untrained = variables.find("untrained");
    return untrained == variables.end() ||
           std::find(untrained->begin(), untrained->end(), message) == untrained->end();
}

// Leaves the spans of answers that count. Precondition: there is one of an answer that does not.
Status keepTrained(const Json& variables, std::vector<TextSpan>& spans)
{
    std::vector<bool> kept;
    for (std::size_t i = 0; i < variables["messages"].size(); ++i)
        if (variables["messages"][i]["role"] == "assistant")
            kept.push_back(isTrained(variables, i));
    if (kept.size() != spans.size())
        return bad("the chat template marks " + std::to_string(spans.size()) + " spans for " +
                   std::to_string(kept.size()) +
                   " answers, so it cannot be told which of them has the weight 0");
    std::size_t index = 0;
    std::erase_if(spans, [&](const TextSpan&) { return !kept[index++]; });
    return {};
}

ChatOptions optionsOf(const fs::path& modelFolder)
{
    ChatOptions options;
    options.bosToken = specialToken(modelFolder, "bos_token");
    options.eosToken = specialToken(modelFolder, "eos_token");
    options.now = fixedDay();
    return options;
}

} // namespace

bool ChatFormat::isIn(const fs::path& modelFolder)
{
    Sources sources;
    return !readSources(modelFolder, sources).ok() || sources.contains("default");
}

Result<ChatFormat> ChatFormat::open(const fs::path& modelFolder)
{
    auto found = find(modelFolder);
    MR_TRY(found.status());
    if (!found.value())
        return bad(
            modelFolder.string() +
            ": the model has no chat template, so it does not know how conversations are written; "
            "teach it one with --chat-template chatml (or llama3, or a file), put a "
            "chat_template.jinja into its folder, or turn each conversation into a row with the "
            "text columns \"prompt\" and \"response\"");
    return *std::move(found).value();
}

Result<ChatFormat> ChatFormat::open(
    const fs::path& modelFolder, const std::string& choice, const Tokenizer& tokenizer)
{
    if (choice.empty())
        return open(modelFolder);
    auto text = templateText(choice, tokenizer);
    MR_TRY(text.status());
    Result<ChatTemplate> parsed = ChatTemplate::parse(text.value());
    if (!parsed.ok())
        return bad("the chosen chat template: " + parsed.status().message());
    return ChatFormat(std::move(parsed).value(), std::nullopt, optionsOf(modelFolder));
}

Result<std::optional<ChatFormat>> ChatFormat::find(const fs::path& modelFolder)
{
    Sources sources;
    MR_TRY(readSources(modelFolder, sources));
    if (!sources.contains("default"))
        return std::optional<ChatFormat>();
    Result<ChatTemplate> plain = ChatTemplate::parse(sources["default"]);
    if (!plain.ok())
        return bad(modelFolder.string() + ": " + plain.status().message());
    std::optional<ChatTemplate> withTools;
    if (sources.contains("tool_use")) {
        Result<ChatTemplate> parsed = ChatTemplate::parse(sources["tool_use"]);
        if (!parsed.ok())
            return bad(modelFolder.string() + ", \"tool_use\": " + parsed.status().message());
        withTools = std::move(parsed).value();
    }
    return std::optional<ChatFormat>(
        ChatFormat(std::move(plain).value(), std::move(withTools), optionsOf(modelFolder)));
}

Result<RenderedChat> ChatFormat::write(const Json& variables, bool prompt) const
{
    return first(variables, variables["messages"].size(), prompt);
}

bool ChatFormat::takesSystem() const
{
    constexpr const char* kProbe = "system-text-that-no-template-holds";
    const Json messages = {{{"role", "system"}, {"content", kProbe}},
        {{"role", "user"}, {"content", "question"}},
        {{"role", "assistant"}, {"content", "answer"}}};
    Result<RenderedChat> written = write({{"messages", messages}}, false);
    return written.ok() && written.value().text().find(kProbe) != std::string::npos;
}

// The first `messages` of a conversation.
Result<RenderedChat> ChatFormat::first(
    const Json& variables, std::size_t messages, bool prompt) const
{
    Json part = variables;
    Json& list = part["messages"];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(messages), list.end());
    ChatOptions options = m_options;
    options.addGenerationPrompt = prompt;
    const bool tools = m_withTools.has_value() && variables.contains("tools");
    return (tools ? *m_withTools : m_plain).render(part, options);
}

// The assistant's turns in `whole`; none where a prefix renders differently than it does in it.
Result<std::optional<std::vector<TextSpan>>> ChatFormat::turns(
    const Json& variables, const std::string& whole) const
{
    std::vector<TextSpan> out;
    for (std::size_t i = 0; i < variables["messages"].size(); ++i) {
        if (!isTrained(variables, i))
            continue;
        Result<RenderedChat> before = first(variables, i, true);
        Result<RenderedChat> after = first(variables, i + 1, false);
        if (!before.ok() || !after.ok()) // templates may refuse half a conversation
            return std::optional<std::vector<TextSpan>>();
        const std::string begin = before.value().text();
        std::string end = after.value().text();
        const bool ends = !m_options.eosToken.empty() && end.ends_with(m_options.eosToken);
        if (ends && !whole.starts_with(end)) // an end of text that only the last message has
            end.resize(end.size() - m_options.eosToken.size());
        if (!whole.starts_with(begin) || !whole.starts_with(end) || end.size() <= begin.size())
            return std::optional<std::vector<TextSpan>>();
        out.push_back({begin.size(), endOfTurn(whole, begin.size(), end.size())});
    }
    return std::optional(std::move(out));
}

Result<std::vector<TrainedChat>> ChatFormat::apart(const Json& variables) const
{
    std::vector<TrainedChat> out;
    for (std::size_t i = 0; i < variables["messages"].size(); ++i) {
        if (!isTrained(variables, i))
            continue;
        Result<RenderedChat> before = first(variables, i, true);
        Result<RenderedChat> whole = first(variables, i + 1, false);
        if (!before.ok() || !whole.ok())
            return before.ok() ? whole.status() : before.status();
        const std::string prompt = before.value().text();
        const std::string text = whole.value().text();
        if (!text.starts_with(prompt) || text.size() == prompt.size())
            return bad("the chat template writes message " + std::to_string(i + 1) +
                       " without the prompt that asks for it, so what is to be trained cannot be "
                       "told from the prompt");
        const TextSpan turn{prompt.size(), endOfTurn(text, prompt.size(), text.size())};
        out.push_back({std::move(whole).value(), {turn}});
    }
    return out;
}

Result<std::vector<TrainedChat>> ChatFormat::render(const Json& variables) const
{
    Result<RenderedChat> whole = first(variables, variables["messages"].size(), false);
    if (!whole.ok())
        return whole.status();
    const bool tools = m_withTools.has_value() && variables.contains("tools");
    std::vector<TrainedChat> out;
    if ((tools ? *m_withTools : m_plain).marksGeneration()) {
        std::vector<TextSpan> spans = whole.value().generated;
        if (variables.contains("untrained"))
            MR_TRY(keepTrained(variables, spans));
        out.push_back({std::move(whole).value(), std::move(spans)});
        return out;
    }
    Result<std::optional<std::vector<TextSpan>>> spans = turns(variables, whole.value().text());
    if (!spans.ok())
        return spans.status();
    if (!spans.value().has_value())
        return apart(variables);
    out.push_back({std::move(whole).value(), std::move(*spans.value())});
    return out;
}

Result<ChatTokens> encodeChat(const TrainedChat& chat, const Tokenizer& tokenizer)
{
    std::vector<TextPart> parts;
    for (const ChatPiece& piece : chat.chat.pieces)
        parts.push_back({piece.text, piece.controls});
    ChatTokens out;
    std::vector<std::size_t> ends;
    MR_TRY(tokenizer.encodeParts(parts, out.ids, ends));
    auto span = chat.trained.begin();
    for (const std::size_t end : ends) {
        while (span != chat.trained.end() && span->end < end)
            ++span;
        out.trained.push_back(span != chat.trained.end() && span->begin < end ? 1 : 0);
    }
    return out;
}

} // namespace mr
