#include "core/data/chat_format.h"

#include "core/data/chat_sources.h"
#include "core/data/chat_templates.h"
#include "core/data/chat_thoughts.h"
#include "core/data/white_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Stands for an answer, to see where answers begin. No prompt goes on with its first letter.
constexpr const char* kSomeAnswer = "\xC2\xA7millrace";

// Steps for a conversation of four messages; published templates take a hundredth.
constexpr int kTrialWork = 500'000;

Status badFormat(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
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
    const std::size_t last = std::string_view(text).substr(0, end).find_last_not_of(kWhite);
    return last == std::string::npos || last < begin ? end : last + 1;
}

bool isBlank(std::string_view text)
{
    return text.find_first_not_of(kWhite) == std::string_view::npos;
}

Status withoutPrompt(std::size_t message)
{
    return badFormat(fmt::format(
        "the chat template writes message {} without the prompt that asks for it, so what is to be "
        "trained cannot be told from the prompt; give another template with --chat-template",
        message + 1));
}

// Bytes of `text` that end the prompt after a question, with all that is not white space; 0: none.
std::size_t headerBytes(std::string_view text, std::string_view asking)
{
    const std::size_t last = text.find_last_not_of(kWhite);
    if (last == std::string_view::npos)
        return 0;
    for (std::size_t size = text.size(); size > last; --size)
        if (asking.ends_with(text.substr(0, size)))
            return size;
    return 0;
}

// Leaves the spans of answers that count. Precondition: there is one of an answer that does not.
Status keepTrained(const Json& variables, std::vector<TextSpan>& spans)
{
    std::vector<bool> kept;
    for (std::size_t i = 0; i < variables["messages"].size(); ++i)
        if (variables["messages"][i]["role"] == "assistant")
            kept.push_back(isTrainedAnswer(variables, i));
    if (kept.size() != spans.size())
        return badFormat(fmt::format("the chat template marks {} spans for {} answers, so it "
                                     "cannot be told which of them has the weight 0",
            spans.size(), kept.size()));
    std::size_t index = 0;
    std::erase_if(spans, [&](const TextSpan&) { return !kept[index++]; });
    return {};
}

ChatOptions optionsOf(const fs::path& modelFolder)
{
    ChatOptions options;
    options.tokens = readTemplateTokens(modelFolder);
    options.now = fixedDay();
    return options;
}

} // namespace

// A trained answer as it is written at its time.
struct ChatFormat::Answer {
    RenderedChat chat;
    std::string text;      // text of `chat`
    std::size_t begin = 0; // where the answer begins in `text`
    std::size_t end = 0;   // behind its end token, and perhaps white space
};

ChatFormat::ChatFormat(
    ChatTemplate plain, std::optional<ChatTemplate> withTools, ChatOptions options)
    : m_plain(std::move(plain))
    , m_withTools(std::move(withTools))
    , m_options(std::move(options))
    , m_habits(findHabits(
          [this](const Json& variables, bool prompt) {
              ChatOptions trial = m_options;
              trial.addGenerationPrompt = prompt;
              trial.work = std::min(trial.work, kTrialWork);
              return templateOf(variables).render(variables, trial);
          },
          m_options.tokens))
{
}

bool ChatFormat::isIn(const fs::path& modelFolder)
{
    const Result<TemplateSources> sources = readTemplateSources(modelFolder);
    return !sources.ok() || Result(sources).value().contains("default");
}

Result<ChatFormat> ChatFormat::open(const fs::path& modelFolder)
{
    MR_ASSIGN(auto found, find(modelFolder));
    if (!found)
        return badFormat(
            modelFolder.string() +
            ": the model has no chat template, so it does not know how conversations are written; "
            "teach it one with --chat-template chatml (or llama3, or a file), put a "
            "chat_template.jinja into its folder, or turn each conversation into a row with the "
            "text columns \"prompt\" and \"response\"");
    return *std::move(found);
}

Result<ChatFormat> ChatFormat::open(
    const fs::path& modelFolder, const std::string& choice, const Tokenizer& tokenizer)
{
    if (choice.empty())
        return open(modelFolder);
    MR_ASSIGN(auto text, templateText(choice, tokenizer));
    Result<ChatTemplate> parsed = ChatTemplate::parse(text);
    if (!parsed.ok())
        return badFormat("the chosen chat template: " + parsed.status().message());
    return ChatFormat(std::move(parsed).value(), std::nullopt, optionsOf(modelFolder));
}

Result<std::optional<ChatFormat>> ChatFormat::find(const fs::path& modelFolder)
{
    MR_ASSIGN(TemplateSources read, readTemplateSources(modelFolder));
    TemplateSources& sources = read;
    if (!sources.contains("default"))
        return std::optional<ChatFormat>();
    Result<ChatTemplate> plain = ChatTemplate::parse(sources["default"]);
    if (!plain.ok())
        return badFormat(modelFolder.string() + ": " + plain.status().message());
    std::optional<ChatTemplate> withTools;
    if (sources.contains("tool_use")) {
        Result<ChatTemplate> parsed = ChatTemplate::parse(sources["tool_use"]);
        if (!parsed.ok())
            return badFormat(modelFolder.string() + ", \"tool_use\": " + parsed.status().message());
        withTools = std::move(parsed).value();
    }
    return std::optional<ChatFormat>(
        ChatFormat(std::move(plain).value(), std::move(withTools), optionsOf(modelFolder)));
}

Result<RenderedChat> ChatFormat::write(const Json& variables, bool prompt) const
{
    return all(adapted(variables, m_habits), prompt);
}

ChatParts ChatFormat::unwritten(const Json& variables) const
{
    return unwrittenParts(
        variables, [this](const Json& v, bool prompt) { return write(v, prompt); });
}

bool ChatFormat::takesSystem() const
{
    const Json messages = {{{"role", "system"}, {"content", "instructions"}},
        {{"role", "user"}, {"content", "question"}},
        {{"role", "assistant"}, {"content", "answer"}}};
    return unwritten({{"messages", messages}}).none();
}

bool ChatFormat::readsNoThink() const
{
    const auto asked = [this](const char* role, std::string content) {
        Json messages = {{{"role", "system"}, {"content", "instructions"}},
            {{"role", "user"}, {"content", "question"}}};
        messages[role == std::string_view("system") ? 0 : 1]["content"] = content;
        Result<RenderedChat> out = write({{"messages", messages}}, true);
        std::string text = out.ok() ? out.value().text() : std::string();
        if (const std::size_t at = text.find(content); at != std::string::npos)
            text.replace(at, content.size(), "millrace");
        return text;
    };
    const std::string with = " " + std::string(kNoThink);
    return asked("user", "question" + with) != asked("user", "question") ||
           asked("system", "instructions" + with) != asked("system", "instructions");
}

const ChatTemplate& ChatFormat::templateOf(const Json& variables) const
{
    return m_withTools.has_value() && variables.contains("tools") ? *m_withTools : m_plain;
}

Result<RenderedChat> ChatFormat::all(const Json& variables, bool prompt) const
{
    ChatOptions options = m_options;
    options.addGenerationPrompt = prompt;
    return templateOf(variables).render(variables, options);
}

// The first `messages` of a conversation.
Result<RenderedChat> ChatFormat::first(
    const Json& variables, std::size_t messages, bool prompt) const
{
    Json part = variables;
    Json& list = part["messages"];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(messages), list.end());
    return all(part, prompt);
}

// Where the prompt for the answer ends. Where the answer does not go on with it, another answer in
// its place shows how far the prompt and a written turn are one: up to the answer, or to the end of
// a thought that the template leaves empty. A prompt that the template refuses to write (nobody
// asks first) ends where that other answer begins.
Status ChatFormat::findBegin(const Json& variables, std::size_t message, Answer& out) const
{
    Result<RenderedChat> before = first(variables, message, true);
    const std::string prompt = before.ok() ? before.value().text() : std::string();
    const bool isAsked = before.ok() && message > 0;
    if (isAsked && out.text.starts_with(prompt)) {
        out.begin = prompt.size();
        const bool isUsual = variables["messages"][message - 1]["role"] == "user" ||
                             (!isBlank(m_habits.asking) && prompt.ends_with(m_habits.asking));
        return isUsual ? Status() : skipHeader(variables, message, out);
    }
    if (isAsked && findOtherPrompt(variables, message, out))
        return {};
    Json other = variables;
    other["messages"][message] = {{"role", "assistant"}, {"content", kSomeAnswer}};
    Result<RenderedChat> turn = first(adapted(other, m_habits), message + 1, false);
    const std::string text = turn.ok() ? turn.value().text() : std::string();
    const std::size_t content = text.rfind(kSomeAnswer);
    const std::size_t common = isAsked ? commonPrefix(prompt, text) : content;
    const bool isFound = content != std::string::npos && common <= content &&
                         out.text.starts_with(text.substr(0, common));
    const std::string between = isFound ? text.substr(common, content - common) : std::string();
    const bool isThought = between.find(kThoughtEnd) != std::string::npos && isAsked &&
                           isBlank(std::string_view(prompt).substr(common));
    if (!isFound || (!isBlank(between) && !isThought))
        return withoutPrompt(message);
    out.begin = common;
    return {};
}

// A template that asks for a thought, or for none, unless it is told: the answer may be of the
// other kind, and its prompt the one that asks for that.
bool ChatFormat::findOtherPrompt(const Json& variables, std::size_t message, Answer& out) const
{
    Json other = variables;
    for (const bool thinks : {true, false}) {
        other["enable_thinking"] = thinks;
        Result<RenderedChat> before = first(other, message, true);
        const std::string prompt = before.ok() ? before.value().text() : std::string();
        if (prompt.empty() || !out.text.starts_with(prompt))
            continue;
        out.begin = prompt.size();
        return true;
    }
    return false;
}

// Templates that ask after a question only write a header before an answer that follows another one
// or a tool's result, and no prompt holds it. The prompt after a question tells how long that
// header is.
Status ChatFormat::skipHeader(const Json& variables, std::size_t message, Answer& out) const
{
    Json other = variables;
    other["messages"][message] = {{"role", "assistant"}, {"content", kSomeAnswer}};
    Result<RenderedChat> turn = first(adapted(other, m_habits), message + 1, false);
    const std::string text = turn.ok() ? turn.value().text() : std::string();
    const std::size_t content = text.rfind(kSomeAnswer);
    if (content == std::string::npos || content < out.begin)
        return {};
    std::string_view between = std::string_view(text).substr(out.begin, content - out.begin);
    if (isBlank(between) || between == m_habits.opening)
        return {};
    if (between.ends_with(m_habits.opening))
        between.remove_suffix(m_habits.opening.size());
    const std::size_t header = headerBytes(between, m_habits.asking);
    if (header == 0 || out.text.compare(out.begin, header, between.substr(0, header)) != 0)
        return withoutPrompt(message);
    out.begin += header;
    return {};
}

Result<ChatFormat::Answer> ChatFormat::answer(const Json& variables, std::size_t message) const
{
    MR_ASSIGN(RenderedChat whole, first(variables, message + 1, false));
    Answer out;
    out.text = whole.text();
    out.chat = std::move(whole);
    MR_TRY(findBegin(variables, message, out));
    if (m_habits.endIsUnclear)
        return badFormat(
            "the chat template writes the prompt for the next answer behind every answer, "
            "and where the answer ends cannot be told from it; give another template with "
            "--chat-template");
    out.end = out.text.size();
    if (out.text.ends_with(m_habits.unasked))
        out.end -= m_habits.unasked.size();
    out.end = std::max(out.begin, out.end);
    return out;
}

// The assistant's turns in `whole`; none where a prefix renders differently than it does in it, or
// templates refuse half a conversation.
std::optional<std::vector<TextSpan>> ChatFormat::turns(
    const Json& variables, const std::string& whole) const
{
    std::vector<TextSpan> out;
    const auto eos = m_options.tokens.find("eos_token");
    const std::string last = eos == m_options.tokens.end() ? std::string() : eos->second;
    for (std::size_t i = 0; i < variables["messages"].size(); ++i) {
        if (!isTrainedAnswer(variables, i))
            continue;
        Result<Answer> found = answer(variables, i);
        if (!found.ok())
            return std::nullopt;
        std::string text = found.value().text.substr(0, found.value().end);
        const bool ends = !last.empty() && text.ends_with(last);
        if (ends && !whole.starts_with(text)) // an end of text that only the last message has
            text.resize(text.size() - last.size());
        const std::size_t begin = found.value().begin;
        if (!whole.starts_with(text) || text.size() < begin)
            return std::nullopt;
        if (text.size() > begin)
            out.push_back({begin, endOfTurn(whole, begin, text.size())});
    }
    return out;
}

Result<std::vector<TrainedChat>> ChatFormat::apart(const Json& variables) const
{
    std::vector<TrainedChat> out;
    for (std::size_t i = 0; i < variables["messages"].size(); ++i) {
        if (!isTrainedAnswer(variables, i))
            continue;
        MR_ASSIGN(Answer found, answer(variables, i));
        Answer& one = found;
        TrainedChat turn{std::move(one.chat), {}};
        if (one.begin < one.end)
            turn.trained.push_back({one.begin, endOfTurn(one.text, one.begin, one.end)});
        out.push_back(std::move(turn));
    }
    return out;
}

Result<std::vector<TrainedChat>> ChatFormat::render(const Json& given) const
{
    const Json variables = adapted(given, m_habits);
    MR_ASSIGN(RenderedChat whole, all(variables, false));
    std::vector<TrainedChat> out;
    if (templateOf(variables).marksGeneration()) {
        std::vector<TextSpan> spans = whole.generated;
        if (variables.contains("untrained"))
            MR_TRY(keepTrained(variables, spans));
        out.push_back({std::move(whole), std::move(spans)});
        return out;
    }
    std::optional<std::vector<TextSpan>> spans = turns(variables, whole.text());
    if (!spans)
        return apart(variables);
    out.push_back({std::move(whole), std::move(*spans)});
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
    std::size_t begin = 0; // where the token begins; tokens that end together begin together
    std::size_t last = 0;  // end of the token before
    for (const std::size_t end : ends) {
        const bool isNext = end > last;
        if (isNext)
            begin = std::exchange(last, end);
        while (span != chat.trained.end() && span->end <= begin)
            ++span;
        const bool touches = span != chat.trained.end() && span->begin < end;
        // White space behind a turn may belong to its end token and to another one as well.
        out.trained.push_back(touches && (isNext || end <= span->end) ? 1 : 0);
    }
    return out;
}

} // namespace mr
