// `millrace export`: what a run trained, in a form that other programs read.

#include "app/cli/commands.h"
#include "app/cli/export_job.h"
#include "app/cli/export_options.h"
#include "app/cli/local_name.h"
#include "core/save/adapter_export.h"
#include "core/save/folder_export.h"

#include <millrace/run_spec.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr::app {
namespace {

Status refuse(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

constexpr std::array<std::pair<ExportType, const char*>, 3> kTypeNames = {
    {{ExportType::F32, "fp32"}, {ExportType::BF16, "bf16"}, {ExportType::F16, "fp16"}}};

Result<std::optional<ExportType>> typeOf(const std::string& precision)
{
    if (precision == "auto")
        return std::optional<ExportType>();
    for (const auto& [type, name] : kTypeNames)
        if (precision == name)
            return std::optional(type);
    return refuse("--precision " + precision +
                  " is no type of safetensors here; use auto, bf16, "
                  "fp16 or fp32");
}

std::string nameOf(ExportType type)
{
    return std::ranges::find(kTypeNames, type, &std::pair<ExportType, const char*>::first)->second;
}

Result<FolderReport> folderNow(const ExportOptions& options)
{
    FolderOptions folder;
    MR_ASSIGN(folder.type, typeOf(options.precision));
    MR_ASSIGN(folder.original, isOriginalBase(options));
    MR_ASSIGN(folder.shardBytes, parseBytes(options.shard));
    if (folder.shardBytes == 0)
        return refuse("--shard " + options.shard + " leaves no room for a tensor");
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(options.model, options.adapter));
    if (options.form == "merged" && place.adapter.empty())
        return refuse(place.model + ": has no adapter to merge; use --to safetensors");
    return exportFolder(place, options.out, folder);
}

int exportModelFolder(const ExportOptions& options)
{
    auto done = folderNow(options);
    if (!done.ok())
        return fail(done.status(), options.json);
    const FolderReport& report = done.value();
    const std::string type = nameOf(report.type);
    if (options.json) {
        printJson({{"model", options.out}, {"precision", type}, {"nf4_base", report.isNf4},
            {"adapted", report.count.elements}, {"unchanged_in_bf16", report.count.unchanged}});
        return 0;
    }
    printText("the model is in %s (%s), read back and equal", options.out.c_str(), type.c_str());
    if (report.isNf4)
        printText("the adapter is in the model as NF4 holds it, beside which it was trained");
    if (report.count.elements > 0)
        printText("%s", fmt::format("{:.1f} % of the {} weights that the adapter changes are the "
                                    "same in bf16 as before",
                            100.0 * static_cast<double>(report.count.unchanged) /
                                static_cast<double>(report.count.elements),
                            report.count.elements)
                            .c_str());
    return 0;
}

Result<AdapterReport> adapterNow(const ExportOptions& options)
{
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(options.model, options.adapter));
    if (options.form == "peft") {
        MR_ASSIGN(const std::optional<ExportType> type, typeOf(options.precision));
        return exportPeft(place, options.out, type.value_or(ExportType::F32));
    }
    if (options.precision != "auto" && options.precision != "f32")
        return refuse("--precision " + options.precision + ": an adapter's GGUF file is in f32");
    return exportGgufAdapter(place, options.out);
}

int exportAdapter(const ExportOptions& options)
{
    auto done = adapterNow(options);
    if (!done.ok())
        return fail(done.status(), options.json);
    const AdapterReport& report = done.value();
    if (options.json) {
        printJson({{"adapter", options.out}, {"modules", report.modules}, {"base", report.base},
            {"bytes", report.bytes}, {"notes", report.notes}});
        return 0;
    }
    printText("the adapter of %s is in %s (%.1f MB), read back and equal", report.base.c_str(),
        options.out.c_str(), static_cast<double>(report.bytes) / 1e6);
    for (const std::string& note : report.notes)
        printText("note: %s", note.c_str());
    return 0;
}

int exportTorchrunJob(const ExportOptions& options)
{
    return exportTorchrun(options.model, options.out, options.json);
}

struct Form {
    const char* name;
    int (*write)(const ExportOptions&);
    const char* help;
};

constexpr std::array<Form, 7> kForms = {{
    {"safetensors", exportModelFolder, "a model folder, with the adapter in it where there is one"},
    {"merged", exportModelFolder, "likewise, of an adapter"},
    {"peft", exportAdapter, "the folder of the adapter alone"},
    {"gguf", exportGgufForm, "one file for llama.cpp, Ollama and LM Studio"},
    {"gguf-adapter", exportAdapter, "one file with the adapter alone, for llama.cpp and Ollama"},
    {"ollama", exportGgufForm, "a folder with that file and the Modelfile that Ollama reads"},
    {"torchrun", exportTorchrunJob,
        "a folder that continues the run with PyTorch on a rented machine"},
}};

std::string formHelp()
{
    std::string text;
    for (const Form& form : kForms)
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", form.name, form.help);
    return text;
}

int exportModel(const ExportOptions& options)
{
    for (const Form& form : kForms)
        if (options.form == form.name)
            return form.write(options);
    return fail(
        refuse("--to " + options.form + " is not known; use one of: " + formHelp()), options.json);
}

} // namespace

Result<bool> isOriginalBase(const ExportOptions& options)
{
    if (options.base != "auto" && options.base != "original")
        return refuse("--base " + options.base + " is not known; use auto or original");
    return options.base == "original";
}

void addExport(CLI::App& app, Action& action)
{
    auto options = std::make_shared<ExportOptions>();
    CLI::App* command =
        app.add_subcommand("export", "What a run trained, in a form that other programs read");
    takeLocalName(*command
                       ->add_option("model", options->model,
                           "Folder of a run, a checkpoint, an adapter or a model, or a name of "
                           "`models`")
                       ->required());
    command->add_option("--adapter", options->adapter, kAdapterHelp);
    command->add_option("--to", options->form, formHelp())->required();
    command->add_option("--out", options->out, "Folder or file to write; it must not exist")
        ->required();
    command->add_option("--precision", options->precision,
        "auto; of safetensors and peft bf16, fp16 or fp32; of gguf and ollama f32, f16, bf16, "
        "q8_0, q6_k, q4_k_m or q4_0");
    command->add_option("--shard", options->shard, "safetensors: bytes of one file at most");
    command->add_option("--base", options->base,
        "The weights that the adapter goes into: auto (beside which it was trained) or original "
        "(of an adapter from --method qlora: before they were quantised)");
    command->add_option("--check", options->check,
        "gguf, ollama: full (the file is asked the questions that the model is) or weights (read "
        "back)");
    command->add_option("--device", options->device, "For the questions: auto, cpu or cuda");
    command->add_option("--threads", options->threads, "Compute threads for them");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->callback([options, &action] { action = [options] { return exportModel(*options); }; });
}

} // namespace mr::app
