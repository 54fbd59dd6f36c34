// `millrace generate`: text from a model, token by token.

#include "app/cli/commands.h"
#include "app/cli/local_name.h"
#include "app/compose.h"
#include "core/answer/inference.h"
#include "core/save/model_folder.h"

#include <millrace/run_spec.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct Arguments {
    std::string model;
    std::string adapter;
    Prompt prompt;
    std::string device = "auto";
    std::string precision = "fp32";
    std::int64_t threads = 0;
    bool greedy = false;
    bool chat = false;
    bool text = false;
    bool json = false;
};

struct Asked {
    ReadPrompt prompt;
    Generated answer;
};

// Reads the prompt and sizes the room for it and its answer, before the weights are read.
Status readFirst(const Arguments& options, const ModelPlace& place, InferenceOptions& inference,
    ReadPrompt& read)
{
    MR_ASSIGN(auto config, readModelConfig(place.model));
    MR_ASSIGN(auto tokenizer, Tokenizer::openFor(place.model, config.vocab));
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    auto prompt = readPrompt(options.prompt, *tokenizer, config, place.model, taught);
    MR_TRY(prompt.status());
    read = std::move(prompt).value();
    inference.seqLen =
        roomFor(static_cast<std::int64_t>(read.tokens.size()) + options.prompt.maxTokens,
            config.longestSequence());
    return {};
}

GenerateOptions generateOptions(const Arguments& options)
{
    const Prompt& prompt = options.prompt;
    GenerateOptions generate{prompt.maxTokens, prompt.temperature, prompt.topP, prompt.seed, {}};
    if (!options.json)
        generate.onText = [](std::string_view piece) {
            printPiece(piece);
            return !isOutputLost();
        };
    return generate;
}

// Without an option: the form of the prompts that the run was trained on.
PromptForm formOf(const Arguments& options)
{
    if (options.chat)
        return PromptForm::Chat;
    const bool asTrained = !options.text && isTrainedOnPrompts(options.model);
    return asTrained ? PromptForm::ChatIfAny : PromptForm::Text;
}

Result<Asked> run(const Arguments& options)
{
    MR_TRY(checkPrompt(options.prompt));
    InferenceOptions inference;
    MR_ASSIGN(inference.compute, inferenceType(options.precision));
    MR_ASSIGN(auto choice, parseDevice(options.device));
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(options.model, options.adapter));
    inference.cache = true;
    inference.adapter = place.adapter;
    Asked out;
    MR_TRY(readFirst(options, place, inference, out.prompt));
    MR_ASSIGN(auto bytes, InferenceModel::deviceBytes(place.model, inference));
    MR_ASSIGN(
        auto device, makeInferenceDevice({choice, bytes, options.threads, inference.compute}));
    MR_ASSIGN(auto model, InferenceModel::load(place.model, inference, *device));
    if (!options.json && !out.prompt.byTemplate)
        printPiece(out.prompt.text);
    auto answer = model->generate(out.prompt, generateOptions(options));
    MR_TRY(answer.status());
    out.answer = std::move(answer).value();
    return out;
}

int generate(Arguments options)
{
    options.prompt.form = formOf(options);
    if (options.greedy)
        options.prompt.temperature = 0.0;
    auto result = run(options);
    if (!result.ok())
        return fail(result.status(), options.json);
    if (!options.json) {
        printLine("");
        return 0;
    }
    const Generated& out = result.value().answer;
    nlohmann::json json{{"text", out.text}, {"ids", out.tokens},
        {"prompt_tokens", out.promptTokens}, {"ended", out.ended}};
    if (options.prompt.form != PromptForm::Text)
        json["prompt"] = result.value().prompt.text;
    printJson(json);
    return 0;
}

} // namespace

void addGenerate(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("generate", "Text from a model");
    takeLocalName(*command
                       ->add_option("--model", options->model,
                           "Folder of a model, a checkpoint or a run, a GGUF file, or a name of "
                           "`models`")
                       ->required());
    command->add_option("--adapter", options->adapter, kAdapterHelp);
    command->add_option("--prompt", options->prompt.text,
        "Prompt; a run trained on prompts and answers reads it as it did in training");
    command->add_option(
        "--system", options->prompt.system, "System text before it, unless it is read as text");
    command->add_flag("--greedy", options->greedy, "Always the most likely token");
    command->add_option("--temperature", options->prompt.temperature, "0 is greedy");
    command->add_option("--top-p", options->prompt.topP, "Share of probability that is kept");
    command->add_option("--max-tokens", options->prompt.maxTokens, "Most new tokens");
    command->add_option("--seed", options->prompt.seed, "Seed of the choice");
    CLI::Option* chat = command->add_flag(
        "--chat", options->chat, "Through the model's chat template; prints only the answer");
    command->add_flag("--text", options->text, "The prompt as it is, whatever a run was trained on")
        ->excludes(chat);
    command->add_option("--device", options->device, "auto, cpu or cuda");
    command->add_option("--precision", options->precision, "fp32 or bf16");
    command->add_option("--threads", options->threads, "Compute threads");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->callback([options, &action] { action = [options] { return generate(*options); }; });
}

} // namespace mr::app
