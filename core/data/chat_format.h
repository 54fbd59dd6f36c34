// A conversation as the sequences that are trained: rendered by the model's own template, with the
// assistant's turns marked and only those.
//
// Where the template marks them itself ({% generation %}) its word counts. Else a turn begins where
// the prompt for it ends (the messages before it with the generation prompt) and ends with its end
// token; both are found by rendering prefixes. A prompt that ends with a thought opened or left
// empty ("<think>") and is followed by an answer without one counts up to there; a template that
// asks for thoughts, or for none, unless it is told (enable_thinking) asks as the answer is. Where
// the template asks after a question only, the header of a further answer is known from the prompt
// after a question. Many templates render old turns differently once new ones follow (thinking is
// dropped): there each turn becomes a sequence of its own, rendered as it would be at its time, and
// trains only its last turn.
//
// Threads    const functions may be called from any number of threads at once.
// Errors     InvalidArgument: a template that cannot be read, or refuses a conversation, or renders
//            a turn without the prompt for it.

#pragma once

#include "core/data/chat_habits.h"
#include "core/data/chat_parts.h"
#include "core/tokenizer/tokenizer.h"

#include <filesystem>
#include <optional>

namespace mr {

struct TrainedChat {
    RenderedChat chat;
    std::vector<TextSpan> trained; // ascending and apart
};

// The tokens of one sequence, and which of them are trained.
struct ChatTokens {
    std::vector<TokenId> ids;
    std::vector<std::uint8_t> trained;
};

class ChatFormat
{
public:
    // The template in a model's folder: chat_template.jinja, else chat_template.json, else
    // tokenizer_config.json ("default" and "tool_use" of a list). InvalidArgument: there is none.
    static Result<ChatFormat> open(const std::filesystem::path& modelFolder);
    // The same; nothing where there is none.
    static Result<std::optional<ChatFormat>> find(const std::filesystem::path& modelFolder);

    // `choice` as in chat_templates.h, in place of the folder's own; empty: that.
    static Result<ChatFormat> open(const std::filesystem::path& modelFolder,
        const std::string& choice, const Tokenizer& tokenizer);

    // Whether there is a template in a model's folder, readable or not.
    static bool isIn(const std::filesystem::path& modelFolder);

    ChatFormat(ChatTemplate plain, std::optional<ChatTemplate> withTools, ChatOptions options);

    // `variables` as readConversation() makes them; messages that "untrained" lists are written and
    // not trained.
    Result<std::vector<TrainedChat>> render(const nlohmann::ordered_json& variables) const;
    // The conversation as it is; with `prompt` up to where the model goes on.
    Result<RenderedChat> write(const nlohmann::ordered_json& variables, bool prompt) const;

    // Parts of the conversation of which the template writes nothing.
    ChatParts unwritten(const nlohmann::ordered_json& variables) const;
    // Whether a system message is written: templates refuse it, or leave it out.
    bool takesSystem() const;
    // Whether the template looks for "/no_think" in a question or a system text.
    bool readsNoThink() const;

private:
    struct Answer;

    // All of these take variables as the template reads them (chat_habits.h).
    const ChatTemplate& templateOf(const nlohmann::ordered_json& variables) const;
    Result<RenderedChat> all(const nlohmann::ordered_json& variables, bool prompt) const;
    Result<RenderedChat> first(
        const nlohmann::ordered_json& variables, std::size_t messages, bool prompt) const;
    Status findBegin(
        const nlohmann::ordered_json& variables, std::size_t message, Answer& out) const;
    bool findOtherPrompt(
        const nlohmann::ordered_json& variables, std::size_t message, Answer& out) const;
    Status skipHeader(
        const nlohmann::ordered_json& variables, std::size_t message, Answer& out) const;
    Result<Answer> answer(const nlohmann::ordered_json& variables, std::size_t message) const;
    std::optional<std::vector<TextSpan>> turns(
        const nlohmann::ordered_json& variables, const std::string& whole) const;
    Result<std::vector<TrainedChat>> apart(const nlohmann::ordered_json& variables) const;

    ChatTemplate m_plain;
    std::optional<ChatTemplate> m_withTools;
    ChatOptions m_options;
    ChatHabits m_habits;
};

// The template writes every token of a conversation: no BOS and no EOS is added. A token is trained
// when it stands for a byte of a trained span, be it only one: an end token may take the white
// space behind a turn along.
Result<ChatTokens> encodeChat(const TrainedChat& chat, const Tokenizer& tokenizer);

} // namespace mr
