// `millrace inspect PATH`: kind, content and problems of a run, model, history or dataset.

#include "app/cli/check_report.h"
#include "app/cli/commands.h"
#include "app/cli/data_options.h"
#include "app/cli/local_name.h"
#include "core/exchange/gguf_folder.h"
#include "core/save/checkpoint.h"
#include "core/telemetry/run_folder.h"

#include <millrace/library.h>
#include <millrace/run_reader.h>
#include <millrace/session.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

struct InspectOptions {
    std::string path;
    std::string model;
    std::string split;
    std::int64_t seqLen = 0;
    DataOptions rows;
    std::string evaluation;
    bool checks = false;
    bool verify = false;
    bool json = false;
};

// Each is looked at, and read whole if that was asked for.
Result<Json> describeRun(const InspectOptions& options)
{
    MR_ASSIGN(auto spec, readRunSpec(options.path));
    MR_ASSIGN(auto record, readRunRecord(options.path));
    const VerifyDepth depth = options.verify ? VerifyDepth::Bytes : VerifyDepth::Lengths;
    const std::string& saveDir = spec.saveDir;
    Json json{{"kind", "run"}, {"name", spec.name}, {"steps", spec.steps}, {"policy", spec.policy},
        {"checkpoints", Json::array()}, {"checkpoint_details", Json::array()},
        {"problems", Json::array()}};
    for (const CheckpointInfo& one : describeCheckpoints(options.path, saveDir)) {
        json["checkpoints"].push_back(one.path.string());
        Json details{{"path", one.path.string()}, {"step", one.step}, {"best", one.isBest}};
        if (std::isfinite(one.evalLoss))
            details["eval_loss"] = one.evalLoss;
        if (one.isBest)
            json["best_checkpoint"] = details;
        json["checkpoint_details"].push_back(details);
    }
    for (const fs::path& path : namedCheckpoints(options.path, saveDir))
        if (auto whole = examineCheckpoint(path, record.uuid, depth); !whole.ok())
            json["problems"].push_back(whole.status().message());
    for (const fs::path& path : asideCheckpoints(options.path, saveDir))
        json["problems"].push_back(path.string() + ": is broken or not of this run, and set aside");
    return json;
}

Result<Json> describeModel(const std::string& path)
{
    auto model = inspectModel(path);
    if (!model.ok())
        return model.status();
    const ModelInfo& info = model.value();
    return Json{{"kind", "model"}, {"architecture", info.architecture}, {"dtype", info.dtype},
        {"parameters", info.parameters}, {"layers", info.layers}, {"hidden", info.hidden},
        {"vocab", info.vocab}, {"max_positions", info.maxPositions},
        {"tied_embedding", info.tiedEmbedding}, {"bytes", info.bytes},
        {"tokenizer", info.tokenizerKind}, {"notes", info.notes}, {"problems", info.problems}};
}

Result<Json> describeHistory(const std::string& path)
{
    MR_ASSIGN(auto reader, RunReader::open(path));
    auto runs = reader->runs();
    if (!runs.ok())
        return runs.status();
    return Json{{"kind", "history"}, {"runs", runs.value().size()}};
}

// The length that `train` would take.
std::int64_t seqLenOf(const InspectOptions& options)
{
    if (options.seqLen > 0)
        return options.seqLen;
    auto model = inspectModel(options.model);
    const bool isKnown = model.ok() && model.value().maxPositions > 0;
    return defaultSeqLen(isKnown ? model.value().maxPositions : INT64_MAX);
}

Result<Json> checksOf(const InspectOptions& options, const DataSource& source, std::int64_t seqLen)
{
    CheckRequest request;
    request.source = source;
    request.modelDir = options.model;
    request.seqLen = seqLen;
    request.split = options.split;
    if (!options.evaluation.empty()) {
        MR_ASSIGN(request.evaluation, options.rows.source(options.evaluation));
    }
    Result<DataChecks> checks = checkDataset(request);
    if (!checks.ok() && checks.status().kind() == ErrorKind::InvalidArgument) // see "problems"
        return Json{{"problems", {checks.status().message()}}};
    MR_TRY(checks.status());
    return checkReport(checks.value());
}

Result<Json> describeDataset(const InspectOptions& options)
{
    MR_ASSIGN(auto source, options.rows.source(options.path));
    MR_TRY(options.rows.exclude(source));
    const std::int64_t seqLen = seqLenOf(options);
    auto dataset = inspectDataset(source, options.model, seqLen, 3, options.split);
    if (!dataset.ok())
        return dataset.status();
    const DatasetInfo& info = dataset.value();
    Json json{{"kind", "dataset"}, {"format", name(info.format)}, {"reading", info.reading},
        {"layout", info.layout}, {"columns", info.columns}, {"mapping", info.mapping},
        {"unused_columns", info.unusedColumns}, {"rows", info.rows},
        {"rows_excluded", info.rowsExcluded}, {"rows_skipped", info.rowsSkipped},
        {"sequences", info.sequences}, {"tokens", info.tokens},
        {"trained_tokens", info.trainedTokens}, {"cut_rows", info.cutRows},
        {"empty_rows", info.emptyRows}, {"seq_len", info.seqLen}, {"packed_rows", info.packedRows},
        {"bytes", info.bytes}, {"problems", info.problems}};
    if (info.answers > 0) {
        json["answers"] = info.answers;
        json["empty_thoughts"] = info.emptyThoughts;
        json["unread_switches"] = info.unreadSwitches;
    }
    json["notes"] = info.notes;
    for (const std::string& advice :
        {thoughtAdvice(info.emptyThoughts, info.answers), switchAdvice(info.unreadSwitches)})
        if (!advice.empty())
            json["notes"].push_back(advice);
    if (info.refusal != DataRefusal::None)
        json["refusal"] = name(info.refusal);
    for (const DataReading& reading : info.readings)
        json["readings"].push_back({{"layout", reading.layout}, {"mapping", reading.mapping},
            {"first_row", reading.firstRow}});
    if (!info.chatTemplate.empty())
        json["chat_template"] = info.chatTemplate;
    if (options.checks) {
        MR_ASSIGN(json["checks"], checksOf(options, source, seqLen));
    }
    return json;
}

bool isDatabase(const fs::path& path)
{
    std::ifstream file(path, std::ios::binary);
    std::string magic(15, '\0');
    file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
    return file && magic == "SQLite format 3";
}

Result<Json> describe(const InspectOptions& options)
{
    const fs::path path = options.path;
    std::error_code error;
    if (!fs::exists(path, error))
        return Status::error(ErrorKind::InvalidArgument, options.path + ": does not exist");
    if (fs::is_directory(path, error))
        return fs::exists(path / "run.json", error) ? describeRun(options)
                                                    : describeModel(options.path);
    if (path.filename() == "config.json")
        return describeModel(path.parent_path().empty() ? "." : path.parent_path().string());
    if (path.filename().string().ends_with("config.json")) // one kept without its folder
        return describeModel(options.path);
    if (!fs::is_regular_file(path, error))
        return Status::error(ErrorKind::InvalidArgument,
            options.path + ": is a device or a pipe; name a regular file or a folder");
    if (isGgufFile(path)) {
        MR_ASSIGN(const fs::path folder, ggufFolder(path));
        return describeModel(folder.string());
    }
    return isDatabase(path) ? describeHistory(options.path) : describeDataset(options);
}

int inspect(const InspectOptions& options)
{
    auto json = describe(options);
    if (!json.ok())
        return fail(json.status(), options.json);
    printJson(json.value(), options.json ? -1 : 2);
    const Json& problems = json.value().value("problems", Json::array());
    return problems.empty() ? 0 : 2;
}

} // namespace

void addInspect(CLI::App& app, Action& action)
{
    auto options = std::make_shared<InspectOptions>();
    CLI::App* command =
        app.add_subcommand("inspect", "Identify a model or dataset and list its problems");
    takeLocalName(*command
                       ->add_option("path", options->path,
                           "Model folder or a name of `models`, GGUF file, dataset, run folder or "
                           "history")
                       ->required());
    takeLocalName(*command->add_option(
        "--model", options->model, "Tokenizer to count a dataset's tokens with"));
    options->rows.addTo(*command);
    command->add_option("--split", options->split, "Text files: cut into documents at this string");
    command
        ->add_option("--seq-len", options->seqLen,
            "Tokens of a sequence (0: what `train` takes for the model)")
        ->check(CLI::NonNegativeNumber);
    CLI::Option* const checks = command->add_flag("--checks", options->checks,
        "Dataset: look at every row for what trains nothing, is cut, is empty, is out of order, is "
        "misread or repeats another row");
    command
        ->add_option("--eval-data", options->evaluation,
            "Evaluation data, whose rows are looked for in the dataset")
        ->needs(checks);
    command->add_flag(
        "--verify", options->verify, "Run folder: read every byte of its checkpoints");
    command->add_flag("--json", options->json, "One line of JSON");
    command->callback([options, &action] { action = [options] { return inspect(*options); }; });
}

} // namespace mr::app
