// `millrace export`: what a run trained, in a form that other programs read.

#include "app/cli/commands.h"
#include "core/save/merge_export.h"

#include <millrace/run_spec.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr::app {
namespace {

struct ExportOptions {
    std::string model;
    std::string adapter;
    std::string form;
    std::string out;
    std::string precision = "auto";
    std::string base = "auto";
    bool json = false;
};

Result<std::optional<ExportType>> typeOf(const std::string& precision)
{
    MR_ASSIGN(const PrecisionChoice choice, parsePrecision(precision));
    switch (choice) {
    case PrecisionChoice::Auto:
        return std::optional<ExportType>();
    case PrecisionChoice::F32:
        return std::optional(ExportType::F32);
    case PrecisionChoice::BF16:
        return std::optional(ExportType::BF16);
    case PrecisionChoice::Fp8:
        break;
    }
    return Status::error(ErrorKind::InvalidArgument,
        "precision fp8 is not a type of exported weights; use bf16 or fp32");
}

Result<MergeReport> exportNow(const ExportOptions& options)
{
    if (options.form != "merged")
        return Status::error(ErrorKind::InvalidArgument,
            "--to " + options.form + " is not known; use merged (a model folder)");
    if (options.base != "auto" && options.base != "original")
        return Status::error(ErrorKind::InvalidArgument,
            "--base " + options.base + " is not known; use auto or original");
    MergeOptions merge;
    MR_ASSIGN(merge.type, typeOf(options.precision));
    merge.original = options.base == "original";
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(options.model, options.adapter));
    return exportMerged(place, options.out, merge);
}

int exportModel(const ExportOptions& options)
{
    const auto done = exportNow(options);
    if (!done.ok())
        return fail(done.status(), options.json);
    const MergeReport report = Result(done).value();
    const bool isWide = report.type == ExportType::F32;
    const double share = static_cast<double>(report.count.unchanged) /
                         static_cast<double>(std::max<std::int64_t>(1, report.count.elements));
    if (options.json) {
        printJson({{"model", options.out}, {"precision", isWide ? "fp32" : "bf16"},
            {"nf4_base", report.isNf4}, {"adapted", report.count.elements},
            {"unchanged_in_bf16", report.count.unchanged}});
        return 0;
    }
    printText("the model is in %s (%s), read back and equal", options.out.c_str(),
        isWide ? "fp32" : "bf16");
    if (report.isNf4)
        printText("the adapter is in the model as NF4 holds it, beside which it was trained");
    printText("%s", fmt::format("{:.1f} % of the {} weights that the adapter changes are the same "
                                "in bf16 as before",
                        100.0 * share, report.count.elements)
                        .c_str());
    return 0;
}

} // namespace

void addExport(CLI::App& app, Action& action)
{
    auto options = std::make_shared<ExportOptions>();
    CLI::App* command =
        app.add_subcommand("export", "What a run trained, in a form that other programs read");
    command
        ->add_option(
            "model", options->model, "Folder of a run, a checkpoint, an adapter or a model")
        ->required();
    command->add_option("--adapter", options->adapter, kAdapterHelp);
    command->add_option("--to", options->form, "merged: a model folder with the adapter in it")
        ->required();
    command->add_option("--out", options->out, "Folder to write; it must not exist")->required();
    command->add_option("--precision", options->precision, "auto (as the model), bf16 or fp32");
    command->add_option("--base", options->base,
        "The weights that the adapter goes into: auto (beside which it was trained) or original "
        "(of an adapter from --method qlora: before they were quantised)");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->callback([options, &action] { action = [options] { return exportModel(*options); }; });
}

} // namespace mr::app
