// `millrace export`: a trained model, in a form that other programs read.

#include "app/cli/byte_progress.h"
#include "app/cli/commands.h"
#include "app/cli/local_name.h"
#include "app/cli/stop_on_signal.h"
#include "app/exports.h"
#include "core/base/clock.h"

#include <millrace/run_spec.h>

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct ExportOptions {
    std::string form;
    std::string shard = "5GB";
    std::string base = "auto";
    std::string check = "full";
    std::string device = "auto";
    ExportOrder order;
    bool json = false;
};

Status refuse(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

std::string formHelp()
{
    std::string text;
    for (const ExportFormInfo& form : exportForms())
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", form.name, form.help);
    return text;
}

Result<ExportForm> formOf(const std::string& name)
{
    for (const ExportFormInfo& form : exportForms())
        if (form.name == name)
            return form.form;
    return refuse("--to " + name + " is not known; use one of: " + formHelp());
}

Result<ExportOrder> orderOf(const ExportOptions& options)
{
    ExportOrder order = options.order;
    MR_ASSIGN(order.form, formOf(options.form));
    MR_ASSIGN(order.shardBytes, parseBytes(options.shard));
    MR_ASSIGN(order.device, parseDevice(options.device));
    if (options.base != "auto" && options.base != "original")
        return refuse("--base " + options.base + " is not known; use auto or original");
    order.original = options.base == "original";
    if (options.check != "full" && options.check != "weights")
        return refuse("--check " + options.check + " is not known; use full or weights");
    order.asks = options.check == "full";
    return order;
}

// A sentence on what to do with it; empty: nothing is to be said.
std::string nextStep(const ExportOrder& order, const ExportOutcome& done)
{
    if (!done.ollamaName.empty())
        return "Ollama has it now: ollama run " + done.ollamaName;
    if (order.form == ExportForm::Ollama)
        return "there: ollama create NAME -f " + done.path + "/Modelfile";
    if (order.form == ExportForm::Torchrun)
        return "README.md there says how it goes on; the folder holds the data of the run as "
               "tokens: give it to no one who may not read that";
    return {};
}

int report(const ExportOrder& order, const ExportOutcome& done, bool json)
{
    constexpr int kNotCreated = 4;
    constexpr int kFailedCheck = 5;
    const int code = !done.passed() ? kFailedCheck : done.notCreated.empty() ? 0 : kNotCreated;
    if (json) {
        printJson({{"path", done.path}, {"bytes", done.bytes}, {"type", done.type},
            {"passed", done.passed()}, {"facts", done.facts}, {"faults", done.faults},
            {"notes", done.notes}, {"ollama", done.ollamaName}, {"not_created", done.notCreated}});
        return code;
    }
    printText("%s (%s)", done.path.c_str(), done.type.c_str());
    for (const std::string& fact : done.facts)
        printText("%s", fact.c_str());
    for (const std::string& note : done.notes)
        printText("note: %s", note.c_str());
    for (const std::string& fault : done.faults)
        printText("fault: %s", fault.c_str());
    if (!done.passed()) {
        printText("it failed its check; do not use it");
        return code;
    }
    if (!done.notCreated.empty())
        printText(
            "the folder is whole, but Ollama has no model of it: %s", done.notCreated.c_str());
    if (const std::string next = nextStep(order, done); !next.empty())
        printText("%s", next.c_str());
    return code;
}

// With its progress on a terminal, until a signal comes.
Result<ExportOutcome> exportWatched(const ExportOrder& order)
{
    const StopOnSignal signal;
    ByteProgress progress = progressOnStderr();
    bool isWritten = false; // it is checked from then on
    Result<ExportOutcome> done = writeExport(order, [&](std::uint64_t bytes, std::uint64_t all) {
        if (!isWritten)
            progress.show(nowNs(), {bytes, all, 0, 0});
        isWritten = isWritten || bytes == all;
        return !signal.isSeen();
    });
    progress.end();
    return done;
}

int carryOutExport(const ExportOptions& options)
{
    auto order = orderOf(options);
    if (!order.ok())
        return fail(order.status(), options.json);
    auto done = exportWatched(order.value());
    if (!done.ok())
        return fail(done.status(), options.json);
    return report(order.value(), done.value(), options.json);
}

} // namespace

void addExport(CLI::App& app, Action& action)
{
    auto options = std::make_shared<ExportOptions>();
    ExportOrder& order = options->order;
    CLI::App* command =
        app.add_subcommand("export", "Write a trained model in a form that other programs read");
    takeLocalName(*command
                       ->add_option("model", order.model,
                           "Folder of a run, a checkpoint, an adapter or a model, or a name of "
                           "`models`")
                       ->required());
    command->add_option("--adapter", order.adapter, kAdapterHelp);
    command->add_option("--to", options->form, formHelp())->required();
    command->add_option("--out", order.out, "Folder or file to write; it must not exist")
        ->required();
    command->add_option("--precision", order.type,
        "auto; of safetensors and peft bf16, fp16 or fp32; of gguf and ollama f32, f16, bf16, "
        "q8_0, q6_k, q4_k_m or q4_0");
    command->add_option("--shard", options->shard, "safetensors: bytes of one file at most");
    command->add_option("--base", options->base,
        "The weights that the adapter goes into: auto (beside which it was trained) or original "
        "(of an adapter from --method qlora: before they were quantised)");
    command->add_option("--check", options->check,
        "gguf, ollama: full (the file is asked the questions that the model is) or weights (read "
        "back)");
    command->add_option("--create", order.ollamaName,
        "ollama: the Ollama that runs on this PC makes a model of this name (127.0.0.1:11434, or "
        "what OLLAMA_HOST names)");
    command->add_option("--device", options->device, "For the questions: auto, cpu or cuda");
    command->add_option("--threads", order.threads, "Compute threads for them");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->callback(
        [options, &action] { action = [options] { return carryOutExport(*options); }; });
}

} // namespace mr::app
