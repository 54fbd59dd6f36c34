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

std::string write(const Marks& marks, const Tokenizer& tokenizer)
{
    const std::string eos = textOf(tokenizer, tokenizer.eos());
    const bool ownEnd = isOneToken(tokenizer, marks.end) || eos.empty();
    const std::string end = ownEnd ? std::string("'") + marks.end + "'" : quoted(eos);
    const std::string begin = "'" + std::string(marks.begin) + "'";
    const std::string middle = "'" + std::string(marks.middle) + "'";
    std::string out;
    if (tokenizer.addsBos())
        if (const std::string bos = textOf(tokenizer, tokenizer.bos()); !bos.empty())
            out += "{{- " + quoted(bos) + " }}";
    out += "{%- for message in messages %}"
           "{%- if message['tool_calls'] %}"
           "{{- raise_exception('this chat template writes no tool calls') }}{%- endif %}"
           "{{- " +
           begin + " + message['role'] + " + middle + " + message['content'] + ";
    if (ownEnd)
        out += end;
    else
        out += "(" + end + " if message['role'] == 'assistant' else '" + marks.end + "')";
    out += " + '" + std::string(marks.gap) + "' }}{%- endfor %}";
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
    auto text = readFileOf(choice);
    MR_TRY(text.status());
    source.columns[std::string(kTemplateKey)] = std::move(text).value();
    return {};
}

} // namespace mr
