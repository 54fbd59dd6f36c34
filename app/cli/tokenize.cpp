// `millrace tokenize`: ids of a text, one JSON object per input.

#include "app/cli/commands.h"
#include "core/base/file.h"
#include "core/data/tokenizer.h"

#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct Options {
    std::string model;
    std::string text;
    std::string textFile;
    bool lines = false;
    bool noSpecial = false;
    bool json = false; // the output is JSON anyway
};

constexpr std::uint64_t kTextLimit = std::uint64_t{4} << 30;

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

Status run(const Options& options)
{
    auto tokenizer = Tokenizer::open(options.model);
    if (!tokenizer.ok())
        return tokenizer.status();
    std::string text = options.text;
    if (options.textFile == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else if (!options.textFile.empty()) {
        MR_TRY(requireFiles({options.textFile}, "--text-file"));
        auto read = readWholeFile(options.textFile, kTextLimit);
        if (!read.ok())
            return read.status();
        text = std::move(read).value();
    }
    if (!options.lines)
        return printIds(*tokenizer.value(), text, !options.noSpecial);
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        MR_TRY(printIds(*tokenizer.value(), std::string_view(text).substr(begin, end - begin),
            !options.noSpecial));
        begin = end + 1;
    }
    return {};
}

} // namespace

void addTokenize(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("tokenize", "Ids of a text");
    command->add_option("--model", options->model, "Model folder or tokenizer file")->required();
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
