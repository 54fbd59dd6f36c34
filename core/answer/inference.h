// InferenceModel: a model folder loaded for evaluation and generation, without training state.
//
// Threads    One thread; blocks on files while loading.
// Ownership  Owns all it made; borrows the Device.
// Errors     Those of config, weights, adapter and tokenizer; OutOfMemory of the device. Internal:
//            a loss or a logit is not finite.
//
// Where rotary positions depend on a length (longrope, dynamic), it is that of the tokens that are
// there and not of the room they were given.

#pragma once

#include "core/answer/decode_loop.h"
#include "core/answer/evaluator.h"
#include "core/answer/prompt_reader.h"
#include "core/model/peft_folder.h"
#include "core/step/run_memory.h"
#include "core/step/step_executor.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/status.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr {

struct InferenceOptions {
    std::int64_t seqLen = 0; // tokens of one sequence; 0: the model's maximum
    std::int64_t microBatch = 1;
    DType compute = DType::F32;
    bool cache = false;       // keys and values of a sequence are kept: generation
    std::string adapter = {}; // folder of one that is put on the model (peft_folder.h); empty: none
};

// Positions to ask for where a sequence of so many tokens is all there will be: models allow far
// more than fits. Units: tokens; `most` is ModelConfig::longestSequence().
std::int64_t roomFor(std::int64_t tokens, std::int64_t most);

class InferenceModel
{
public:
    // Device memory that load() will allocate, so that a device of that size can be made first.
    static Result<std::size_t> deviceBytes(
        const std::string& folder, const InferenceOptions& options);
    static Result<std::unique_ptr<InferenceModel>> load(
        const std::string& folder, const InferenceOptions& options, Device& device);

    const ModelConfig& config() const noexcept { return m_config; }
    const Tokenizer& tokenizer() const noexcept { return *m_tokenizer; }
    std::int64_t seqLen() const noexcept { return m_micro.seqLen; }

    // Puts another adapter on the model, or none (an empty path), without reading the model again.
    // False: this one has no room for it, which is made for one of the same settings.
    Result<bool> useAdapter(const std::string& adapter);

    // Sequences of at most seqLen() + 1 tokens.
    Result<EvalResult> evaluate(const TokenSet& set);

    // Precondition: options.cache, or limit 0.
    Result<AnswerScore> scoreAnswers(const TokenSet& set, std::int64_t limit);

    // Calls `take` with the logits behind the first n tokens, for n from `from` to all of them.
    // Precondition: options.cache, 0 < from <= tokens.size() <= seqLen().
    Status followLogits(std::span<const TokenId> tokens, std::size_t from,
        const std::function<Status(std::span<const float>)>& take);

    // Precondition: options.cache.
    Result<Generated> generate(const ReadPrompt& prompt, const GenerateOptions& options);

private:
    InferenceModel() = default;
    static Result<std::unique_ptr<InferenceModel>> describe(
        const std::string& folder, const InferenceOptions& options);
    Status addAdapter(const std::string& adapter);
    Status removeAdapter();
    Status loadAdapter(const std::string& adapter, const PeftConfig& config);
    Status loadWeightsOnto(const std::string& folder, const std::string& adapter, Device& device);
    TurnFor turnFor();

    ModelConfig m_config;
    ParamTable m_table;
    std::string m_folder;       // of the model
    AdapterSettings m_settings; // of the adapter, as its folder has them
    std::string m_modelHash;    // of its weights, where there is an adapter
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
