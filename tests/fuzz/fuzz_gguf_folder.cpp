// A stranger's GGUF file is opened as a model: the folder that it stands for, config, table of
// parameters, tokenizer, chat template, weights, and the memory to ask it.

#include "core/answer/inference.h"
#include "core/answer/prompt_reader.h"
#include "core/exchange/gguf_folder.h"
#include "core/model/param_table.h"
#include "core/model/weights.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/fuzz_tokenizers.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace mr::fuzz {
namespace {

constexpr std::int64_t kMostRead = 1 << 12; // elements of a tensor

void readWeights(
    const std::filesystem::path& model, const ModelConfig& config, const ParamTable& table)
{
    auto opened = openWeights(model, config, table);
    if (!check(opened))
        return;
    MasterPiece piece;
    for (const NamedTensor& tensor : table.tensors) {
        const std::int64_t count = std::min(tensor.count(), kMostRead);
        const std::int64_t last = tensor.first + tensor.count() - count;
        (void)check(opened.value()->read(tensor.group, last, piece.view(count)));
    }
}

void readQuestion(const std::filesystem::path& model, const ModelConfig& config)
{
    auto tokenizer = Tokenizer::openFor(model, config.vocab);
    if (!check(tokenizer))
        return;
    Prompt prompt;
    prompt.text = kTexts.front();
    prompt.form = PromptForm::ChatIfAny;
    auto read = readPrompt(prompt, *tokenizer.value(), config, model.string());
    if (!check(read))
        return;
    for (const TokenId id : read.value().tokens)
        require(id >= 0 && id < config.vocab, "a token that the model has no row for");
    useTokenizer(std::move(tokenizer), {});
}

void useConfig(const std::filesystem::path& model)
{
    auto parsed = readModelConfig(model);
    if (!check(parsed))
        return;
    const ModelConfig& config = parsed.value();
    require(config.vocab > 0 && config.layers > 0 && config.hidden > 0, "a model of no size");
    const ParamTable table = buildParamTable(config);
    require(table.parameters > 0, "a model of no parameters");
    require(table.groups.size() == static_cast<std::size_t>(config.layers) + 2, "other groups");
    readQuestion(model, config);
    readWeights(model, config, table);
    InferenceOptions options;
    options.seqLen = roomFor(64, config.longestSequence());
    options.cache = true;
    auto bytes = InferenceModel::deviceBytes(model.string(), options);
    if (check(bytes))
        require(bytes.value() > 0, "a model that needs no memory");
}

} // namespace

void ggufFolder(std::string_view bytes)
{
    static const FuzzFolder folder;
    ::setenv("XDG_CACHE_HOME", (folder.path() / "cache").c_str(), 1);
    folder.remove("cache"); // a file of the same size may have been written in the same tick
    auto model = mr::ggufFolder(folder.write("model.gguf", bytes));
    if (check(model))
        useConfig(model.value());
}

} // namespace mr::fuzz
