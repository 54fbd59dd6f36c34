// `millrace export`: what a run trained, in a form that other programs read.

#include "app/cli/commands.h"
#include "app/gguf_export.h"
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
    std::string check = "full";
    std::string device = "auto";
    std::int64_t threads = 0;
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

Status refuse(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

Result<bool> isOriginal(const ExportOptions& options)
{
    if (options.base != "auto" && options.base != "original")
        return refuse("--base " + options.base + " is not known; use auto or original");
    return options.base == "original";
}

Result<MergeReport> mergeNow(const ExportOptions& options)
{
    MergeOptions merge;
    MR_ASSIGN(merge.type, typeOf(options.precision));
    MR_ASSIGN(merge.original, isOriginal(options));
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(options.model, options.adapter));
    return exportMerged(place, options.out, merge);
}

int exportFolder(const ExportOptions& options)
{
    const auto done = mergeNow(options);
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

Result<GgufOutcome> ggufNow(const ExportOptions& options)
{
    GgufRequest request;
    request.model = options.model;
    request.adapter = options.adapter;
    request.out = options.out;
    if (options.precision != "auto") {
        request.form = parseGgufForm(options.precision);
        if (!request.form)
            return refuse("--precision " + options.precision +
                          " is no type of a GGUF file; use auto, f32, f16, bf16, q8_0, q6_k, "
                          "q4_k_m or q4_0");
    }
    MR_ASSIGN(request.original, isOriginal(options));
    MR_ASSIGN(request.device, parseDevice(options.device));
    if (options.check != "full" && options.check != "weights")
        return refuse("--check " + options.check + " is not known; use full or weights");
    request.asks = options.check == "full";
    request.threads = options.threads;
    return writeCheckedGguf(request);
}

void printVerdict(const GgufOutcome& outcome)
{
    for (const auto& [type, error] : outcome.report.errors)
        printText("%s", fmt::format("{}: {} weights, read back {}", type, error.weights,
                            error.largest == 0.0
                                ? std::string("equal")
                                : fmt::format("with an error of {:.2g} of their size, {:.2g} at "
                                              "most",
                                      error.relative, error.largest))
                            .c_str());
    if (outcome.verdict) {
        const ExportVerdict& v = *outcome.verdict;
        printText("%s",
            fmt::format("asked: {} of {} texts become the same tokens; in {} answers {:.1f} % of "
                        "{} tokens agree, mean KL {:.2g}",
                v.sameTexts, v.texts, v.prompts, 100.0 * v.agreement(), v.tokens, v.divergence)
                .c_str());
    }
    for (const std::string& note : outcome.report.notes)
        printText("note: %s", note.c_str());
}

int exportFile(const ExportOptions& options)
{
    auto done = ggufNow(options);
    if (!done.ok())
        return fail(done.status(), options.json);
    const GgufOutcome& outcome = done.value();
    if (options.json) {
        printJson({{"file", outcome.file.string()}, {"bytes", outcome.report.bytes},
            {"form", ggufFormName(outcome.report.form)}, {"passed", outcome.faults.empty()},
            {"faults", outcome.faults}, {"notes", outcome.report.notes}});
        return outcome.faults.empty() ? 0 : 1;
    }
    printText("%s (%s, %.1f MB)", outcome.file.c_str(),
        std::string(ggufFormName(outcome.report.form)).c_str(),
        static_cast<double>(outcome.report.bytes) / 1e6);
    printVerdict(outcome);
    for (const std::string& fault : outcome.faults)
        printText("fault: %s", fault.c_str());
    printText(outcome.faults.empty() ? "the file answers as the model does"
                                     : "the file failed its check; do not use it");
    return outcome.faults.empty() ? 0 : 1;
}

int exportModel(const ExportOptions& options)
{
    if (options.form == "merged")
        return exportFolder(options);
    if (options.form == "gguf")
        return exportFile(options);
    return fail(refuse("--to " + options.form +
                       " is not known; use merged (a model folder) or gguf (one file)"),
        options.json);
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
    command
        ->add_option("--to", options->form,
            "merged: a model folder with the adapter in it; gguf: one file for llama.cpp, Ollama "
            "and LM Studio")
        ->required();
    command->add_option("--out", options->out, "Folder or file to write; it must not exist")
        ->required();
    command->add_option("--precision", options->precision,
        "auto, or for merged bf16 or fp32; for gguf f32, f16, bf16, q8_0, q6_k, q4_k_m or q4_0");
    command->add_option("--base", options->base,
        "The weights that the adapter goes into: auto (beside which it was trained) or original "
        "(of an adapter from --method qlora: before they were quantised)");
    command->add_option("--check", options->check,
        "gguf: full (the file is asked the questions that the model is) or weights (read back)");
    command->add_option("--device", options->device, "For the questions: auto, cpu or cuda");
    command->add_option("--threads", options->threads, "Compute threads for them");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->callback([options, &action] { action = [options] { return exportModel(*options); }; });
}

} // namespace mr::app
