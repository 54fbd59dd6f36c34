// `millrace tokenize`: ids of a text, one JSON object per input.

#include "app/cli/commands.h"
#include "app/cli/local_name.h"
#include "core/base/file.h"
#include "core/exchange/gguf_folder.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/unicode_text.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

namespace mr::app {
namespace {

struct TokenizeOptions {
    std::string model;
    std::string text;
    std::string textFile;
    bool lines = false;
    bool noSpecial = false;
    bool json = false; // the output is JSON anyway
};

constexpr std::uint64_t kTextLimit = std::uint64_t{4} << 30;
constexpr std::size_t kPieceBytes = std::size_t{2} << 20;

// {"ids":[...]} as the ids come, so that they need not be in memory together.
class IdLine
{
public:
    void put(std::vector<TokenId>& ids)
    {
        for (const TokenId id : ids) {
            m_text += m_begun ? "," : "{\"ids\":[";
            m_text += std::to_string(id);
            m_begun = true;
        }
        ids.clear();
        if (m_text.size() >= kPrintedBytes)
            flush();
    }
    void end()
    {
        m_text += m_begun ? "]}" : "{\"ids\":[]}";
        flush();
        printLine({});
    }
    // After an error: the next output begins a line.
    void breakOff()
    {
        if (m_printed)
            printLine({});
    }

private:
    static constexpr std::size_t kPrintedBytes = std::size_t{64} << 10;

    void flush()
    {
        printPiece(std::exchange(m_text, {}));
        m_printed = true;
    }

    std::string m_text;
    bool m_begun = false;
    bool m_printed = false;
};

// Calls `take(text, isEnd)` with the text from front to back, in whole characters where it is
// UTF-8; it returns how much of it was taken.
template <typename Take>
Status readPieces(const File& file, std::uint64_t bytes, const Take& take)
{
    std::string waiting;
    std::uint64_t at = 0;
    do {
        const std::size_t old = waiting.size();
        waiting.resize(
            old + static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, bytes - at)));
        MR_TRY(file.readAt(at, std::as_writable_bytes(std::span(waiting)).subspan(old)));
        at += waiting.size() - old;
        std::string_view text = waiting;
        if (at < bytes)
            text.remove_suffix(unfinishedBytes(text));
        MR_ASSIGN(std::size_t taken, take(text, at == bytes));
        waiting.erase(0, taken);
    } while (at < bytes);
    return {};
}

// A stream wants UTF-8; other bytes are encoded whole.
Status encode(const Tokenizer& tokenizer, const File& file, std::uint64_t bytes, IdLine& line)
{
    bool valid = true;
    MR_TRY(readPieces(file, bytes, [&](std::string_view text, bool) -> Result<std::size_t> {
        valid = valid && isUtf8(text);
        return text.size();
    }));
    std::vector<TokenId> ids;
    const std::unique_ptr<TextStream> stream = tokenizer.stream();
    return readPieces(file, bytes, [&](std::string_view text, bool isEnd) -> Result<std::size_t> {
        Result<std::size_t> taken = std::size_t{0};
        if (valid)
            taken = stream->encode(text, isEnd, ids);
        else if (isEnd)
            MR_TRY(tokenizer.encode(text, ids));
        line.put(ids);
        return taken;
    });
}

Status printFile(const Tokenizer& tokenizer, const std::string& path, bool specials)
{
    MR_ASSIGN(File file, File::openRead(path));
    MR_ASSIGN(std::uint64_t bytes, file.bytes());
    IdLine line;
    std::vector<TokenId> ids;
    if (specials && tokenizer.addsBos() && tokenizer.bos() >= 0)
        ids.push_back(tokenizer.bos());
    line.put(ids);
    const Status done = encode(tokenizer, file, bytes, line);
    if (!done.ok()) {
        line.breakOff();
        return done;
    }
    if (specials && tokenizer.addsEos() && tokenizer.eos() >= 0)
        ids.push_back(tokenizer.eos());
    line.put(ids);
    line.end();
    return {};
}

Status printIds(const Tokenizer& tokenizer, std::string_view text, bool specials)
{
    std::vector<TokenId> ids;
    if (specials && tokenizer.addsBos() && tokenizer.bos() >= 0)
        ids.push_back(tokenizer.bos());
    MR_TRY(tokenizer.encode(text, ids));
    if (specials && tokenizer.addsEos() && tokenizer.eos() >= 0)
        ids.push_back(tokenizer.eos());
    printJson({{"ids", ids}});
    return {};
}

Status run(const TokenizeOptions& options)
{
    std::filesystem::path model = options.model;
    if (isGgufFile(model)) {
        MR_ASSIGN(model, ggufFolder(model));
    }
    MR_ASSIGN(auto tokenizer, Tokenizer::open(model));
    std::string text = options.text;
    if (options.textFile == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else if (!options.textFile.empty()) {
        MR_TRY(requireFiles({options.textFile}, "--text-file"));
        if (!options.lines)
            return printFile(*tokenizer, options.textFile, !options.noSpecial);
        MR_ASSIGN(text, readWholeFile(options.textFile, kTextLimit));
    }
    if (!options.lines)
        return printIds(*tokenizer, text, !options.noSpecial);
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        MR_TRY(printIds(
            *tokenizer, std::string_view(text).substr(begin, end - begin), !options.noSpecial));
        begin = end + 1;
    }
    return {};
}

} // namespace

void addTokenize(CLI::App& app, Action& action)
{
    auto options = std::make_shared<TokenizeOptions>();
    CLI::App* command = app.add_subcommand("tokenize", "Ids of a text");
    takeLocalName(*command
                       ->add_option("--model", options->model,
                           "Model folder, GGUF file, tokenizer file, or a name of `models`")
                       ->required());
    auto* text = command->add_option("--text", options->text, "The text");
    command->add_option("--text-file", options->textFile, "A file, or - for standard input")
        ->excludes(text);
    command->add_flag("--lines", options->lines, "One input per line");
    command->add_flag("--no-special", options->noSpecial, "Without BOS and EOS");
    command->add_flag("--json", options->json, "The output is JSON in any case");
    command->callback([options, &action] {
        action = [options] {
            const Status status = run(*options);
            return status.ok() ? 0 : fail(status, true);
        };
    });
}

} // namespace mr::app
