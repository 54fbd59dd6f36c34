// `millrace generate`: text from a model, token by token.

#include "app/cli/commands.h"
#include "app/compose.h"
#include "core/engine/inference.h"

#include <millrace/run_spec.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct Options {
    std::string model;
    std::string prompt;
    std::string device = "auto";
    std::string precision = "fp32";
    GenerateOptions generate;
    std::int64_t threads = 0;
    bool greedy = false;
    bool chat = false;
    bool json = false;
};

Result<Generated> run(const Options& options)
{
    if (options.chat)
        return Status::error(ErrorKind::InvalidArgument,
            "--chat is not built yet: chat templates come later; give the prompt as text");
    const bool inRange = options.generate.temperature >= 0.0 && options.generate.topP >= 0.0 &&
                         options.generate.topP <= 1.0; // false for NaN
    if (!inRange)
        return Status::error(ErrorKind::InvalidArgument,
            "--temperature must be at least 0 and --top-p between 0 and 1");
    if (options.generate.maxTokens < 1)
        return Status::error(ErrorKind::InvalidArgument,
            "--max-tokens " + std::to_string(options.generate.maxTokens) + ": must be at least 1");
    auto precision = parsePrecision(options.precision);
    if (!precision.ok())
        return precision.status();
    auto choice = parseDevice(options.device);
    if (!choice.ok())
        return choice.status();
    InferenceOptions inference;
    inference.cache = true;
    inference.compute = precision.value() == PrecisionChoice::BF16 ? DType::BF16 : DType::F32;
    auto bytes = InferenceModel::deviceBytes(options.model, inference);
    if (!bytes.ok())
        return bytes.status();
    auto device =
        makeInferenceDevice({choice.value(), bytes.value(), options.threads, inference.compute});
    if (!device.ok())
        return device.status();
    auto model = InferenceModel::load(options.model, inference, *device.value());
    if (!model.ok())
        return model.status();
    GenerateOptions generate = options.generate;
    if (options.greedy)
        generate.temperature = 0.0;
    if (!options.json) {
        (void)std::fputs(options.prompt.c_str(), stdout);
        generate.onText = [](std::string_view piece) {
            (void)std::fwrite(piece.data(), 1, piece.size(), stdout);
            (void)std::fflush(stdout);
            return true;
        };
    }
    return model.value()->generate(options.prompt, generate);
}

int generate(const Options& options)
{
    auto result = run(options);
    if (!result.ok())
        return fail(result.status(), options.json);
    const Generated& out = result.value();
    if (options.json)
        printLine(nlohmann::json{{"text", out.text}, {"ids", out.tokens},
            {"prompt_tokens", out.promptTokens}, {"ended", out.ended}}
                      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
        printLine("");
    return 0;
}

} // namespace

void addGenerate(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("generate", "Text from a model");
    command->add_option("--model", options->model, "Model folder")->required();
    command->add_option("--prompt", options->prompt, "Prompt");
    command->add_flag("--greedy", options->greedy, "Always the most likely token");
    command->add_option("--temperature", options->generate.temperature, "0 is greedy");
    command->add_option("--top-p", options->generate.topP, "Share of probability that is kept");
    command->add_option("--max-tokens", options->generate.maxTokens, "Most new tokens");
    command->add_option("--seed", options->generate.seed, "Seed of the choice");
    command->add_flag("--chat", options->chat, "Use the model's chat template");
    command->add_option("--device", options->device, "auto, cpu or cuda");
    command->add_option("--precision", options->precision, "fp32 or bf16");
    command->add_option("--threads", options->threads, "Compute threads");
    command->add_flag("--json", options->json, "One JSON object on stdout");
    command->callback([options, &action] { action = [options] { return generate(*options); }; });
}

} // namespace mr::app
