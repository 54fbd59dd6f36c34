// InferenceModel: a model folder loaded for evaluation and generation, without training state.
//
// Threads    One thread; blocks on files while loading.
// Ownership  Owns all it made; borrows the Device.
// Errors     Those of config, weights and tokenizer; OutOfMemory of the device.

#pragma once

#include "core/data/tokenizer.h"
#include "core/engine/evaluator.h"
#include "core/engine/run_memory.h"
#include "core/engine/step_executor.h"

#include <millrace/status.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct InferenceOptions {
    std::int64_t seqLen = 0; // tokens of one sequence; 0: what the model allows
    std::int64_t microBatch = 1;
    DType compute = DType::F32;
    bool cache = false; // keys and values of a sequence are kept: generation
};

struct GenerateOptions {
    std::int64_t maxTokens = 256;
    double temperature = 1.0; // 0: greedy
    double topP = 1.0;
    std::uint64_t seed = 1;
    // Each new piece of text as it is decided; false stops.
    std::function<bool(std::string_view piece)> onText;
};

struct Generated {
    std::string text; // of the new tokens
    std::vector<TokenId> tokens;
    std::int64_t promptTokens = 0;
    bool ended = false; // by an end token, not by the limit
};

class InferenceModel
{
public:
    // What load() will ask of a device, so that one of that size can be made first.
    static Result<std::size_t> deviceBytes(
        const std::string& folder, const InferenceOptions& options);
    static Result<std::unique_ptr<InferenceModel>> load(
        const std::string& folder, const InferenceOptions& options, Device& device);

    const ModelConfig& config() const noexcept { return m_config; }
    const Tokenizer& tokenizer() const noexcept { return *m_tokenizer; }
    std::int64_t seqLen() const noexcept { return m_micro.seqLen; }

    // Sequences of at most seqLen() + 1 tokens.
    Result<EvalResult> evaluate(const TokenSet& set);

    // Precondition: options.cache, or limit 0.
    Result<AnswerScore> scoreAnswers(const TokenSet& set, std::int64_t limit);

    // Precondition: options.cache. The prompt is text; BOS is added where the tokenizer does.
    Result<Generated> generate(std::string_view prompt, const GenerateOptions& options);

private:
    InferenceModel() = default;
    static Result<std::unique_ptr<InferenceModel>> describe(
        const std::string& folder, const InferenceOptions& options);
    Status loadWeightsOnto(const std::string& folder, Device& device);

    ModelConfig m_config;
    ParamTable m_table;
    MicroShape m_micro;
    ModelShape m_shape;
    StepSpec m_step;
    MemoryPlan m_plan;
    std::unique_ptr<Tokenizer> m_tokenizer;
    std::unique_ptr<TierStore> m_tiers;
    std::unique_ptr<RunMemory> m_memory;
    std::unique_ptr<StepExecutor> m_executor;
};

} // namespace mr
