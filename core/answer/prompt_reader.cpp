#include "core/answer/prompt_reader.h"

#include "core/api/json_fields.h"
#include "core/data/chat_format.h"
#include "core/data/pair_format.h"
#include "core/tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace mr {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Stands for an answer, to find the text that the template puts behind one.
constexpr const char* kSomeAnswer = "millrace";

Json messagesOf(const Prompt& prompt)
{
    Json messages = Json::array();
    if (!prompt.system.empty())
        messages.push_back({{"role", "system"}, {"content", prompt.system}});
    messages.push_back({{"role", "user"}, {"content", prompt.text}});
    return Json{{"messages", std::move(messages)}};
}

Status encodePieces(
    const RenderedChat& chat, const Tokenizer& tokenizer, std::vector<TokenId>& tokens)
{
    std::vector<TextPart> parts;
    for (const ChatPiece& piece : chat.pieces)
        parts.push_back({piece.text, piece.controls});
    std::vector<std::size_t> ends;
    return tokenizer.encodeParts(parts, tokens, ends);
}

// The control token that a template writes behind an answer; none where it writes plain text there,
// or refuses so short a conversation.
Status addEndOfTurn(
    const ChatFormat& format, const Tokenizer& tokenizer, std::vector<TokenId>& ends)
{
    Prompt question;
    question.text = kSomeAnswer;
    Json variables = messagesOf(question);
    variables["messages"].push_back({{"role", "assistant"}, {"content", kSomeAnswer}});
    const Result<RenderedChat> chat = format.write(variables, false);
    if (!chat.ok())
        return {};
    const std::string whole = Result(chat).value().text();
    const std::size_t answer = whole.rfind(kSomeAnswer);
    const std::size_t behind =
        answer == std::string::npos
            ? answer
            : whole.find_first_not_of(" \t\r\n", answer + std::string_view(kSomeAnswer).size());
    if (behind == std::string::npos)
        return {};
    std::vector<TokenId> tokens;
    std::vector<std::size_t> unused;
    const TextPart tail{std::string_view(whole).substr(behind), true};
    MR_TRY(tokenizer.encodeParts({&tail, 1}, tokens, unused));
    if (tokens.empty())
        return {};
    const Result<std::string> shown = tokenizer.decode({tokens.data(), 1});
    MR_TRY(shown.status());
    if (Result(shown).value().empty() && tokens.front() != tokenizer.bos())
        ends.push_back(tokens.front());
    return {};
}

Status addEndsOf(const fs::path& folder, std::vector<TokenId>& ends)
{
    const fs::path file = folder / "generation_config.json";
    std::error_code ignored;
    if (!fs::exists(file, ignored))
        return {};
    const Result<nlohmann::json> config = readJsonObject(file);
    MR_TRY(config.status());
    const nlohmann::json object = Result(config).value();
    const nlohmann::json given = object.value("eos_token_id", nlohmann::json());
    for (const auto& id : given.is_array() ? given : nlohmann::json::array({given})) {
        if (id.is_number_integer() && id >= 0 && id < kMaxTokenId)
            ends.push_back(id.get<TokenId>());
        else if (!id.is_null())
            return Status::error(ErrorKind::InvalidArgument,
                file.string() + ": \"eos_token_id\" holds " + shown(id) +
                    "; it must be a token id or a list of them");
    }
    return {};
}

Status readChat(
    const Prompt& prompt, const ChatFormat& format, const Tokenizer& tokenizer, ReadPrompt& out)
{
    const Result<RenderedChat> chat = format.write(messagesOf(prompt), true);
    MR_TRY(chat.status());
    const RenderedChat rendered = Result(chat).value();
    out.text = rendered.text();
    out.byTemplate = true;
    MR_TRY(encodePieces(rendered, tokenizer, out.tokens));
    return addEndOfTurn(format, tokenizer, out.ends);
}

Status readPlain(const Prompt& prompt, const Tokenizer& tokenizer, ReadPrompt& out)
{
    out.text = prompt.text;
    if (prompt.form == PromptForm::Text) {
        if (tokenizer.addsBos() && tokenizer.bos() >= 0)
            out.tokens.push_back(tokenizer.bos());
        return tokenizer.encode(prompt.text, out.tokens);
    }
    if (!prompt.system.empty())
        out.text = prompt.system + "\n" + prompt.text;
    closePrompt(out.text);
    return encodePrompt(tokenizer, out.text, out.tokens);
}

} // namespace

Result<ReadPrompt> readPrompt(const Prompt& prompt, const Tokenizer& tokenizer,
    const ModelConfig& config, const fs::path& folder, const std::string& chatTemplate)
{
    ReadPrompt out;
    for (const std::int64_t id : config.eosTokens)
        out.ends.push_back(static_cast<TokenId>(id));
    MR_TRY(addEndsOf(folder, out.ends));
    std::optional<ChatFormat> format;
    if (prompt.form != PromptForm::Text && !chatTemplate.empty()) {
        MR_ASSIGN(auto taught, ChatFormat::open(folder, chatTemplate, tokenizer));
        format = std::move(taught);
    } else if (prompt.form != PromptForm::Text) {
        MR_ASSIGN(auto found, ChatFormat::find(folder));
        format = std::move(found);
    }
    if (format)
        MR_TRY(readChat(prompt, *format, tokenizer, out));
    else if (prompt.form == PromptForm::Chat)
        return Status::error(ErrorKind::InvalidArgument,
            folder.string() + ": the model has no chat template; put a chat_template.jinja into "
                              "its folder, or give the prompt as text, without --chat");
    else
        MR_TRY(readPlain(prompt, tokenizer, out));
    return out;
}

Status checkPrompt(const Prompt& prompt)
{
    const bool inRange =
        prompt.temperature >= 0.0 && prompt.topP >= 0.0 && prompt.topP <= 1.0; // false for NaN
    if (!inRange)
        return Status::error(ErrorKind::InvalidArgument,
            "--temperature must be at least 0 and --top-p between 0 and 1");
    if (prompt.maxTokens < 1)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("--max-tokens {}: must be at least 1", prompt.maxTokens));
    if (!prompt.system.empty() && prompt.form == PromptForm::Text)
        return Status::error(ErrorKind::InvalidArgument,
            "--system goes through the chat template of the model: give --chat, too; this prompt "
            "is "
            "read as text");
    return {};
}

} // namespace mr
