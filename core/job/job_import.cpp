#include "core/job/job_import.h"

#include "core/base/file.h"
#include "core/job/job_losses.h"
#include "core/job/job_text.h"
#include "core/model/peft_folder.h"
#include "core/save/model_folder.h"
#include "core/save/run_files.h"
#include "core/save/written_aside.h"
#include "core/telemetry/run_folder.h"
#include "core/telemetry/step_json.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostJobBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostLossBytes = std::uint64_t{1} << 30;

struct JobResult {
    fs::path out;
    JobHeader header;
    JobLosses losses;
    NewRun record;
};

Status refuseImport(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

Result<JobResult> readResult(const fs::path& out)
{
    std::error_code error;
    if (!fs::exists(out / "job.json", error))
        return refuseImport(out.string() + ": has no job.json; name the out/ folder that train.py "
                                           "of a job has written");
    JobResult result;
    result.out = out;
    MR_ASSIGN(const std::string job, readWholeFile(out / "job.json", kMostJobBytes));
    MR_ASSIGN(result.header, jobHeaderFrom(job, (out / "job.json").string()));
    const char* folder = isAdapterRun(result.header.spec) ? "adapter" : "model";
    if (!fs::is_directory(out / folder, error))
        return refuseImport(fmt::format(
            "{}: has no {}/ yet; train.py writes it after its last step", out.string(), folder));
    const fs::path losses = out / "losses.jsonl";
    MR_ASSIGN(const std::string lines, readWholeFile(losses, kMostLossBytes));
    MR_ASSIGN(result.losses, parseJobLosses(lines, losses.string()));
    return result;
}

Status importModel(JobResult& result, const fs::path& folder, const ImportOptions& options)
{
    const fs::path from = result.out / "model";
    MR_ASSIGN(const ModelConfig config, readModelConfig(from));
    const ParamTable table = buildParamTable(config);
    MR_ASSIGN(const auto weights, openWeights(from, config, table));
    const bool isWide = result.header.spec.precision == PrecisionChoice::F32;
    const ExportType type = options.type.value_or(isWide ? ExportType::F32 : ExportType::BF16);
    result.record.modelArchitecture = config.architecture;
    result.record.modelDtype = type == ExportType::F32 ? "float32" : "bfloat16";
    result.record.parameters = table.parameters;
    return saveModel(folder / "model", config, table, *weights, type, from);
}

Status importAdapter(JobResult& result, const fs::path& folder)
{
    const fs::path from = result.out / "adapter";
    const fs::path base = result.header.spec.modelDir;
    std::error_code error;
    if (!fs::exists(base / "config.json", error))
        return refuseImport(fmt::format(
            "{}: the model beside the adapter is not there; name its folder with --model",
            base.string()));
    MR_ASSIGN(PeftConfig peft, readPeftConfig(from));
    MR_ASSIGN(const ModelConfig config, readModelConfig(base));
    MR_ASSIGN(const ParamTable table, adapterTable(buildParamTable(config), peft.settings));
    MR_ASSIGN(const auto model, openWeights(base, config, wholeModel(table)));
    MR_ASSIGN(const std::string hash, weightsHash(wholeModel(table), *model));
    if (peft.baseHash.empty())
        peft.baseHash = result.header.baseHash;
    MR_TRY(checkBase(from, peft, base, hash));
    MR_ASSIGN(const auto adapter, openPeftWeights(from, table));
    peft.base = base.string();
    result.record.modelArchitecture = config.architecture;
    result.record.modelDtype = config.dtype;
    result.record.parameters = wholeModel(table).parameters;
    MR_TRY(savePeft(folder / "adapter", peft, table, *adapter, ExportType::F32));
    MR_ASSIGN(const std::string taught, ModelPlace{base.string(), from.string()}.chatTemplate());
    return taught.empty() ? Status()
                          : replaceFile(folder / "adapter" / "chat_template.jinja", taught);
}

// The logs that a run folder keeps.
Status writeLogs(const JobLosses& losses, const fs::path& folder)
{
    std::string steps;
    for (const StepRow& row : losses.steps)
        steps += toJson(row) + "\n";
    std::string events;
    for (const ScalarRow& row : losses.evaluations)
        events += toJson("eval_loss", row) + "\n";
    MR_TRY(replaceFile(folder / "steps.jsonl", steps));
    return replaceFile(folder / "events.jsonl", events);
}

Status writeRecord(JobResult& result, const fs::path& part, const fs::path& folder)
{
    RunSpec spec = result.header.spec;
    spec.name = result.header.name + " (torchrun)";
    spec.outDir = folder.string();
    spec.saveDir.clear();
    NewRun& run = result.record;
    run.uuid = newUuid();
    run.name = spec.name;
    run.modelPath = spec.modelDir;
    run.datasetPath = datasetPath(spec);
    run.configJson = toJson(spec);
    run.engineVersion = "torchrun";
    run.totalSteps = spec.steps;
    run.prompts = result.header.prompts;
    return saveRunRecord(part.string(), run);
}

Result<ImportReport> importInto(
    JobResult& result, const fs::path& part, const fs::path& folder, const ImportOptions& options)
{
    std::error_code error;
    fs::create_directories(part, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create folder " + part.string() + ": " + error.message());
    if (!options.base.empty())
        result.header.spec.modelDir = fs::absolute(options.base, error).string();
    const bool isAdapter = isAdapterRun(result.header.spec);
    MR_TRY(isAdapter ? importAdapter(result, part) : importModel(result, part, options));
    MR_TRY(writeLogs(result.losses, part));
    MR_TRY(writeRecord(result, part, folder));
    ImportReport report{std::ssize(result.losses.steps), result.header.fromStep, 0.0, isAdapter};
    if (!result.losses.steps.empty()) {
        report.lastStep = result.losses.steps.back().step;
        report.lastLoss = result.losses.steps.back().loss;
    }
    return report;
}

} // namespace

Result<ImportReport> importJob(
    const fs::path& jobOut, const fs::path& folder, const ImportOptions& options)
{
    std::error_code error;
    const fs::path whole = fs::absolute(folder, error).lexically_normal();
    const fs::path final = whole.has_filename() ? whole : whole.parent_path();
    ImportReport report;
    MR_TRY(writeAside(final, [&](const fs::path& part) -> Status {
        MR_ASSIGN(JobResult result, readResult(jobOut));
        MR_ASSIGN(report, importInto(result, part, final, options));
        return {};
    }));
    return report;
}

} // namespace mr
