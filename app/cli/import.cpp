// `millrace import`: a run that went on elsewhere, brought home.

#include "app/cli/commands.h"
#include "app/compose.h"
#include "core/job/job_import.h"
#include "core/run/run_history.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct ImportCall {
    std::string job;
    std::string out;
    std::string precision = "auto";
    std::string model;
    std::string database;
    bool json = false;
};

Result<std::optional<ExportType>> importedType(const std::string& precision)
{
    if (precision == "auto")
        return std::optional<ExportType>();
    const std::optional<ExportType> type = parseExportType(precision);
    if (type == ExportType::F32 || type == ExportType::BF16)
        return type;
    return Status::error(ErrorKind::InvalidArgument,
        "--precision " + precision + " is no type of weights; use auto, bf16 or fp32");
}

Result<ImportReport> importNow(const ImportCall& call)
{
    ImportOptions options;
    MR_ASSIGN(options.type, importedType(call.precision));
    options.base = call.model;
    MR_ASSIGN(const auto store, openStore(call.database));
    MR_ASSIGN(const ImportReport report, importJob(call.job, call.out, options));
    MR_TRY(rebuildHistory(*store, call.out).status());
    return report;
}

int carryOutImport(const ImportCall& call)
{
    auto done = importNow(call);
    if (!done.ok())
        return fail(done.status(), call.json);
    const ImportReport& report = done.value();
    if (call.json) {
        printJson({{"run", call.out}, {"adapter", report.isAdapter}, {"steps", report.steps},
            {"last_step", report.lastStep}, {"last_loss", report.lastLoss}});
        return 0;
    }
    printText("%s",
        fmt::format("{}: {} in {}/, and the losses of {} steps in the history; step {} "
                    "ended with {:.4f}",
            call.out, report.isAdapter ? "an adapter" : "a model",
            report.isAdapter ? "adapter" : "model", report.steps, report.lastStep, report.lastLoss)
            .c_str());
    return 0;
}

} // namespace

void addImport(CLI::App& app, Action& action)
{
    auto call = std::make_shared<ImportCall>();
    CLI::App* command =
        app.add_subcommand("import", "Brings home what a job of `export --to torchrun` has made");
    command->add_option("job", call->job, "The out/ folder of the job")->required();
    command
        ->add_option("--out", call->out,
            "Run folder to write, with model/ or adapter/ in it; it must not exist")
        ->required();
    command->add_option("--precision", call->precision,
        "Type of a model's weights: auto (that of the run), bf16 or fp32");
    command->add_option("--model", call->model,
        "Folder of the model beside an adapter, where it is not where the run had it");
    command->add_option("--db", call->database, "History; empty: the user's");
    command->add_flag("--json", call->json, "One JSON object on stdout");
    command->callback([call, &action] { action = [call] { return carryOutImport(*call); }; });
}

} // namespace mr::app
