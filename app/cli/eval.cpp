// `millrace eval`: mean cross-entropy of a model on text or pairs.

#include "app/cli/commands.h"
#include "app/cli/data_options.h"
#include "app/cli/local_name.h"
#include "app/compose.h"
#include "core/answer/inference.h"
#include "core/save/model_folder.h"

#include <millrace/library.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct EvalOptions {
    std::string model;
    std::string adapter;
    std::vector<std::string> data;
    DataOptions rows;
    std::string split;
    bool perLine = false;
    std::int64_t blocks = 0;
    std::int64_t seqLen = 0;
    std::int64_t threads = 0;
    std::string precision = "fp32";
    std::string device = "auto";
    std::int64_t answers = 0;
    bool json = false;
};

// Blocks stand alone: each of seqLen tokens predicts its own last seqLen - 1. Parts of a text are
// one sequence each, BOS in front, cut at seqLen tokens.
TokenSetOptions setOptions(const EvalOptions& options, std::int64_t seqLen)
{
    TokenSetOptions set;
    set.seqLen = seqLen;
    set.split = options.split;
    set.modelFolder = options.model;
    set.perLine = options.perLine;
    set.overlapTarget = false;
    set.endOfDocument = false;
    set.specials = options.blocks == 0;
    set.firstBlockOnly = options.perLine || !options.split.empty();
    return set;
}

void keepFirst(TokenSet& set, std::int64_t sequences)
{
    if (sequences == 0 || sequences >= set.count())
        return;
    set.sequences = set.sequences.firstOnes(sequences);
}

Result<TokenSet> readData(const EvalOptions& options, const InferenceModel& model)
{
    std::vector<DataSource> sources;
    for (const std::string& path : options.data) {
        MR_ASSIGN(auto source, options.rows.source(path));
        sources.push_back(std::move(source));
    }
    if (!sources.empty())
        MR_TRY(options.rows.exclude(sources.front()));
    auto set = buildTokenSet(sources, model.tokenizer(), setOptions(options, model.seqLen()));
    if (!set.ok())
        return set.status();
    keepFirst(set.value(), options.blocks);
    if (options.blocks > set.value().count())
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("--blocks {}: the data has only {} blocks of {} tokens", options.blocks,
                set.value().count(), model.seqLen()));
    return set;
}

void print(const EvalOptions& options, const TokenSet& set, const EvalResult& figures,
    const AnswerScore& score)
{
    const auto skipped =
        set.badRows ? set.badRows->skipped() : std::map<std::string, std::int64_t>();
    if (options.json) {
        nlohmann::json json{{"loss", figures.loss}, {"perplexity", std::exp(figures.loss)},
            {"tokens", figures.tokens}, {"sequences", figures.sequences},
            {"data", {{"layout", set.layout}, {"mapping", set.mapping},
                         {"unused_columns", set.unusedColumns},
                         {"rows_excluded", set.badRows ? set.badRows->excluded() : 0},
                         {"rows_skipped", skipped}}}};
        if (options.answers > 0) {
            json["answers"] = score.asked;
            json["answers_right"] = score.right;
        }
        printJson(json);
        return;
    }
    say("data: " + layoutNote(set.layout, set.mapping, set.unusedColumns));
    printText("loss %.6f  perplexity %.3f  over %lld tokens in %lld sequences", figures.loss,
        std::exp(figures.loss), static_cast<long long>(figures.tokens),
        static_cast<long long>(figures.sequences));
    if (!skipped.empty())
        printText("rows that cannot be read left out: %s", faultList(skipped).c_str());
    if (options.answers > 0)
        printText("answers right: %lld of %lld", static_cast<long long>(score.right),
            static_cast<long long>(score.asked));
}

Status check(const EvalOptions& options)
{
    if (options.blocks < 0 || options.seqLen < 0 || options.answers < 0)
        return Status::error(
            ErrorKind::InvalidArgument, "--blocks, --seq-len and --answers must not be negative");
    return requireFiles(options.data, "--data");
}

int eval(EvalOptions options)
{
    if (const Status status = check(options); !status.ok())
        return fail(status, options.json);
    auto place = modelPlaceOf(options.model, options.adapter);
    if (!place.ok())
        return fail(place.status(), options.json);
    options.model = place.value().model;
    options.adapter = place.value().adapter;
    auto compute = inferenceType(options.precision);
    if (!compute.ok())
        return fail(compute.status(), options.json);
    auto choice = parseDevice(options.device);
    if (!choice.ok())
        return fail(choice.status(), options.json);
    InferenceOptions model;
    model.seqLen = options.seqLen;
    model.cache = options.answers > 0;
    model.compute = compute.value();
    model.adapter = options.adapter;
    const auto bytes = InferenceModel::deviceBytes(options.model, model);
    if (!bytes.ok())
        return fail(bytes.status(), options.json);
    auto device = makeInferenceDevice(
        {choice.value(), Result(bytes).value(), options.threads, model.compute});
    if (!device.ok())
        return fail(device.status(), options.json);
    auto loaded = InferenceModel::load(options.model, model, *device.value());
    if (!loaded.ok())
        return fail(loaded.status(), options.json);
    auto set = readData(options, *loaded.value());
    if (!set.ok())
        return fail(set.status(), options.json);
    const auto result = loaded.value()->evaluate(set.value());
    if (!result.ok())
        return fail(result.status(), options.json);
    const EvalResult figures = Result(result).value();
    auto score = loaded.value()->scoreAnswers(set.value(), options.answers);
    if (!score.ok())
        return fail(score.status(), options.json);
    print(options, set.value(), figures, score.value());
    return 0;
}

} // namespace

void addEval(CLI::App& app, Action& action)
{
    auto options = std::make_shared<EvalOptions>();
    CLI::App* command = app.add_subcommand("eval", "Mean cross-entropy on data");
    takeLocalName(*command
                       ->add_option("--model", options->model,
                           "Folder of a model, a checkpoint or a run, or a name of `models`")
                       ->required());
    command->add_option("--adapter", options->adapter, kAdapterHelp);
    command->add_option("--data", options->data, "Dataset file; may be repeated")->required();
    options->rows.addTo(*command);
    auto* blocks = command->add_option(
        "--blocks", options->blocks, "First N non-overlapping blocks of --seq-len, without BOS");
    auto* split = command->add_option("--split", options->split, "Text: one sequence per part");
    command->add_flag("--per-line", options->perLine, "Text: one sequence per line")
        ->excludes(blocks)
        ->excludes(split);
    split->excludes(blocks);
    command->add_option("--seq-len", options->seqLen, "Tokens of a sequence (0: the model's most)");
    command->add_option("--answers", options->answers,
        "Pairs that are also answered greedily and compared with the response");
    command->add_option("--precision", options->precision, "fp32 or bf16");
    command->add_option("--device", options->device, "auto, cpu or cuda");
    command->add_option("--threads", options->threads, "Compute threads");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->callback([options, &action] { action = [options] { return eval(*options); }; });
}

} // namespace mr::app
