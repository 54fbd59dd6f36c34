// inspectModel: a model folder as a user should see it, with everything that is wrong with it.

#include "core/model/gguf_weights.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/model/weights.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/library.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace mr {

namespace {

namespace fs = std::filesystem;

// Opened, because the name of its file tells neither its kind nor whether it can be used.
void lookForTokenizer(const fs::path& folder, ModelInfo& info)
{
    Result<std::unique_ptr<Tokenizer>> opened =
        info.canBePlanned ? Tokenizer::openFor(folder, info.vocab) : Tokenizer::open(folder);
    if (opened.ok()) {
        info.tokenizerKind = opened.value()->kind();
        if (const std::string_view note = opened.value()->note(); !note.empty())
            info.notes.emplace_back(note);
    } else {
        info.problems.push_back(opened.status().message());
    }
}

void describe(const ModelConfig& config, const ParamTable& table, ModelInfo& info)
{
    info.architecture = config.architecture;
    info.dtype = config.dtype;
    info.parameters = table.parameters;
    info.layers = config.layers;
    info.hidden = config.hidden;
    info.vocab = config.vocab;
    info.maxPositions = config.maxPositions;
    info.tiedEmbedding = config.tiedEmbedding;
    info.notes = config.notes;
    if (config.layerInput > 0)
        info.notes.push_back(fmt::format(
            "A table of {} numbers beside these parameters gives each block an input; it is "
            "trained where the whole model is, and otherwise rows of it are read from the model's "
            "file.",
            config.inputVocab * config.inputColumns()));
    std::vector<std::string> untrained;
    for (const CarriedTensor& tensor : config.carried)
        if (!tensor.isInputTable())
            untrained.push_back(tensor.name);
    if (!untrained.empty())
        info.notes.push_back(fmt::format("{} tensors of the files, such as {}, are not trained; a "
                                         "saved model has them as they are.",
            untrained.size(), untrained.front()));
}

void lookIntoGguf(
    const fs::path& file, const ModelConfig& config, const ParamTable& table, ModelInfo& info)
{
    Result<GgufFacts> facts = checkGgufWeights(file, config, table);
    if (!facts.ok()) {
        info.problems.push_back(facts.status().message());
        return;
    }
    info.dtype = facts.value().type;
    info.bytes = facts.value().bytes;
    info.notes.push_back("A GGUF file: it is read as the numbers that its blocks stand for. It can "
                         "be asked and evaluated, and an adapter can be trained beside it.");
}

void lookForWeights(
    const fs::path& folder, const ModelConfig& config, const ParamTable& table, ModelInfo& info)
{
    if (const fs::path file = ggufOf(folder); !file.empty())
        return lookIntoGguf(file, config, table, info);
    Result<WeightFiles> files = findWeights(folder, config, table);
    if (!files.ok()) {
        info.problems.push_back(files.status().message());
        return;
    }
    info.bytes = files.value().bytes;
    // The files are the truth about the type; the config may be older.
    constexpr std::array<std::array<std::string_view, 2>, 3> kNames = {
        {{"F32", "float32"}, {"F16", "float16"}, {"BF16", "bfloat16"}}};
    if (files.value().dtypes.size() == 1)
        for (const auto& [stored, name] : kNames)
            if (files.value().dtypes.front() == stored)
                info.dtype = name;
}

} // namespace

Result<ModelInfo> inspectModel(const std::string& path)
{
    std::error_code error;
    const fs::path at = fs::path(path).lexically_normal();
    const bool folder = fs::is_directory(at, error);
    if (!fs::exists(folder ? at / "config.json" : at, error))
        return readModelConfig(at).status();
    ModelInfo info;
    info.path = path;
    info.name = (at.has_filename() ? at : at.parent_path()).filename().string();
    Result<ModelConfig> config = readModelConfig(at);
    if (config.ok()) {
        const ParamTable table = buildParamTable(config.value());
        describe(config.value(), table, info);
        info.canBePlanned = true;
        if (folder)
            lookForWeights(at, config.value(), table, info);
    } else {
        info.problems.push_back(config.status().message());
    }
    if (folder)
        lookForTokenizer(at, info);
    else
        info.problems.push_back(path + ": this is a config without weights and tokenizer; it can "
                                       "be planned, not fine-tuned");
    return info;
}

} // namespace mr
