#include "core/data/chat_templates.h"

#include "core/base/file.h"
#include "core/data/columns.h"

#include <filesystem>
#include <vector>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kChatMl = "chatml";
constexpr std::string_view kLlama3 = "llama3";
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

// The marks around a message: begin + role + middle + content + end + gap.
struct Marks {
    const char* begin;
    const char* middle;
    const char* end;
    const char* gap;
};

constexpr Marks kChatMlMarks{"<|im_start|>", "\\n", "<|im_end|>", "\\n"};
constexpr Marks kLlama3Marks{"<|start_header_id|>", "<|end_header_id|>\\n\\n", "<|eot_id|>", ""};

bool isText(std::string_view choice) noexcept
{
    return choice.find("{{") != std::string_view::npos ||
           choice.find("{%") != std::string_view::npos;
}

bool isOneToken(const Tokenizer& tokenizer, const std::string& text)
{
    const TextPart part{text, true};
    std::vector<TokenId> ids;
    std::vector<std::size_t> ends;
    return !text.empty() && tokenizer.encodeParts({&part, 1}, ids, ends).ok() && ids.size() == 1;
}

// The text that a template must hold for this token; empty: none is read as it.
std::string textOf(const Tokenizer& tokenizer, TokenId id)
{
    const std::string text = id < 0 ? std::string() : tokenizer.piece(id);
    return isOneToken(tokenizer, text) ? text : std::string();
}

// As a Jinja string between single quotes.
std::string quoted(const std::string& text)
{
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\')
            out += '\\';
        out += c;
    }
    return out + "'";
}

// The list of tools as a turn of the system, behind `begin`.
std::string toolsTurn(const std::string& begin, const std::string& end)
{
    return "{%- if tools %}{{- " + begin +
           " + 'Tools that can be called, each call as "
           "<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>:' }}"
           "{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}{{- " +
           end + " }}{%- endif %}";
}

// A thought, the content and the calls of a message.
constexpr const char* kBody =
    "{%- if message['reasoning_content'] %}"
    "{{- '<think>\\n' + message['reasoning_content'] + '\\n</think>\\n\\n' }}{%- endif %}"
    "{{- message['content'] }}"
    "{%- for call in message['tool_calls'] or [] %}"
    "{%- set called = call['function'] or call %}"
    "{{- ('\\n' if message['content'] or not loop.first else '') + '<tool_call>' + "
    "({'name': called['name'], 'arguments': called['arguments']} | tojson) + '</tool_call>' }}"
    "{%- endfor %}";

std::string write(const Marks& marks, const Tokenizer& tokenizer)
{
    const std::string eos = textOf(tokenizer, tokenizer.eos());
    const bool ownEnd = isOneToken(tokenizer, marks.end) || eos.empty();
    const std::string begin = "'" + std::string(marks.begin) + "'";
    const std::string middle = "'" + std::string(marks.middle) + "'";
    const std::string gap = "'" + std::string(marks.gap) + "'";
    const std::string end = "'" + std::string(marks.end) + "'";
    std::string out;
    if (tokenizer.addsBos())
        if (const std::string bos = textOf(tokenizer, tokenizer.bos()); !bos.empty())
            out += "{{- " + quoted(bos) + " }}";
    out += toolsTurn(begin + " + 'system' + " + middle, end + " + " + gap);
    out += "{%- for message in messages %}{{- " + begin + " + message['role'] + " + middle + " }}";
    out += kBody;
    out += "{{- ";
    if (ownEnd)
        out += end;
    else
        out += "(" + quoted(eos) + " if message['role'] == 'assistant' else " + end + ")";
    out += " + " + gap + " }}{%- endfor %}";
    out += "{%- if add_generation_prompt %}{{- " + begin + " + 'assistant' + " + middle +
           " }}{%- endif %}";
    return out;
}

Result<std::string> readFileOf(const std::string& choice)
{
    std::error_code error;
    if (!fs::is_regular_file(choice, error))
        return Status::error(ErrorKind::InvalidArgument,
            "chat template \"" + choice +
                "\": want chatml, llama3 or a file that holds a Jinja template");
    auto text = readWholeFile(choice, kMostBytes);
    if (text.ok() && !isText(text.value()))
        return Status::error(ErrorKind::InvalidArgument,
            choice + ": holds no Jinja template ({{ ... }} or {% ... %})");
    return text;
}

} // namespace

std::string_view templateName(std::string_view choice) noexcept
{
    if (choice.empty() || choice == kChatMl || choice == kLlama3)
        return choice;
    return "own";
}

Result<std::string> templateText(const std::string& choice, const Tokenizer& tokenizer)
{
    if (choice == kChatMl)
        return write(kChatMlMarks, tokenizer);
    if (choice == kLlama3)
        return write(kLlama3Marks, tokenizer);
    return isText(choice) ? Result<std::string>(choice) : readFileOf(choice);
}

Status settleTemplate(DataSource& source)
{
    const std::string choice = templateAsked(source);
    if (templateName(choice) != "own" || isText(choice))
        return {};
    MR_ASSIGN(source.columns[std::string(kTemplateKey)], readFileOf(choice));
    return {};
}

} // namespace mr
