#include "core/answer/inference.h"

#include "core/model/dora.h"
#include "core/model/frozen_model.h"
#include "core/model/packed_group.h"
#include "core/model/peft_folder.h"
#include "core/model/weights.h"
#include "core/plan/plan_builder.h"
#include "core/plan/policies.h"
#include "core/step/run_master.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mr {
Result<std::unique_ptr<InferenceModel>> InferenceModel::describe(
    const std::string& folder, const InferenceOptions& options)
{
    auto model = std::unique_ptr<InferenceModel>(new InferenceModel);
    MR_ASSIGN(model->m_config, readModelConfig(folder));
    const std::int64_t most = model->m_config.longestSequence();
    const std::int64_t seqLen = options.seqLen == 0 ? model->m_config.maxPositions : options.seqLen;
    if (seqLen > most)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{}: the model allows {} positions, not {}", folder, most, seqLen));
    model->m_table = buildParamTable(model->m_config);
    if (!options.adapter.empty())
        MR_TRY(model->addAdapter(options.adapter));
    model->m_micro = {seqLen, options.microBatch, 1, options.compute};
    setAdapterMemory(model->m_table, 0.0, model->m_micro);
    model->m_shape = modelShape(model->m_config, model->m_table, model->m_micro);
    model->m_step.recompute = Recompute::Block;
    model->m_step.precision = options.compute == DType::F32 ? Precision::F32 : Precision::BF16;
    model->m_plan = planInferenceMemory(model->m_step, model->m_shape);
    if (options.cache) {
        std::vector<BlockCache> cache;
        model->m_plan.items.push_back({Tier::Device, MemoryUse::KeyValueCache, {},
            layoutCache(model->m_config, model->m_micro, nullptr, cache)});
    }
    return model;
}

// The model stays as it is, and what the adapter adds is read beside it.
Status InferenceModel::addAdapter(const std::string& adapter)
{
    MR_ASSIGN(const PeftConfig config, readPeftConfig(adapter));
    m_settings = config.settings;
    AdapterSettings held = m_settings;
    held.nf4Base = false; // the model is held as what its codes stand for
    auto table = adapterTable(m_table, held);
    if (!table.ok())
        return Status::error(table.status().kind(),
            adapter + ": does not fit this model: " + table.status().message());
    m_table = std::move(table).value();
    return {};
}

// Checks that it is of this model.
Status InferenceModel::loadAdapter(const std::string& adapter, const PeftConfig& config)
{
    MR_TRY(checkBase(adapter, config, m_folder, m_modelHash));
    MR_ASSIGN(const auto weights, openPeftWeights(adapter, m_table));
    MR_TRY(installMaster(*m_executor, *m_memory, *weights));
    m_memory->addsAdapter = true;
    return {};
}

// Puts the model's own weights back where the adapter has others in their place.
Status InferenceModel::removeAdapter()
{
    m_memory->addsAdapter = false;
    if (!isAdapter(m_table) || (m_settings.saved.empty() && m_settings.tokens.empty()))
        return {};
    MR_ASSIGN(const auto weights, openWeights(m_folder, m_config, wholeModel(m_table)));
    const auto fresh = freshAdapter(m_table, 0, *weights, m_micro.compute);
    return installMaster(*m_executor, *m_memory, *fresh);
}

Result<bool> InferenceModel::useAdapter(const std::string& adapter)
{
    if (adapter.empty()) {
        MR_TRY(removeAdapter());
        return true;
    }
    MR_ASSIGN(const PeftConfig config, readPeftConfig(adapter));
    if (!isAdapter(m_table) || m_settings != config.settings)
        return false;
    MR_TRY(loadAdapter(adapter, config));
    return true;
}

Result<std::size_t> InferenceModel::deviceBytes(
    const std::string& folder, const InferenceOptions& options)
{
    MR_ASSIGN(auto model, describe(folder, options));
    return model->m_plan.bytes(Tier::Device);
}

Result<std::unique_ptr<InferenceModel>> InferenceModel::load(
    const std::string& folder, const InferenceOptions& options, Device& device)
{
    MR_ASSIGN(std::unique_ptr<InferenceModel> model, describe(folder, options));
    MR_ASSIGN(model->m_tokenizer, Tokenizer::openFor(folder, model->m_config.vocab));
    MR_TRY(model->loadWeightsOnto(folder, options.adapter, device));
    return model;
}

Status InferenceModel::loadWeightsOnto(
    const std::string& folder, const std::string& adapter, Device& device)
{
    m_folder = folder;
    MR_ASSIGN(auto weights, openWeights(folder, m_config, wholeModel(m_table)));
    MR_ASSIGN(m_tiers, TierStore::create(device, m_plan));
    MR_ASSIGN(
        m_memory, RunMemory::create(*m_tiers, m_config, m_table, m_micro, 1, 2, Recompute::Block));
    MR_ASSIGN(m_executor, StepExecutor::create(device, *m_memory, m_config, m_table, nullptr));
    MR_TRY(m_executor->prepareMemory());
    if (adapter.empty())
        return installMaster(*m_executor, *m_memory, *weights);
    MR_ASSIGN(const PeftConfig config, readPeftConfig(adapter));
    if (m_settings.nf4Base) {
        MR_ASSIGN(m_modelHash, weightsHash(wholeModel(m_table), *weights));
        MR_TRY(
            installFrozen(*m_executor, m_table, *nf4Model(wholeModel(m_table), *weights)).status());
    } else {
        MR_ASSIGN(m_modelHash, installFrozen(*m_executor, m_table, *weights));
    }
    return loadAdapter(adapter, config);
}

Result<EvalResult> InferenceModel::evaluate(const TokenSet& set)
{
    MR_ASSIGN(auto policy, makePolicy("resident", {}));
    MR_ASSIGN(auto plan, buildEvaluation(m_step, Carry{}, m_shape, Budget{}, Feedback{}, policy));
    auto result = mr::evaluate(
        *m_executor, plan, set, {m_micro.seqLen, m_micro.microBatch, 1}, {}, turnFor());
    if (result.ok() && !std::isfinite(result.value().loss))
        return Status::error(ErrorKind::Internal,
            "eval: the loss is not a finite number: the model's weights are damaged or too large; "
            "take an earlier checkpoint, or try --precision fp32");
    return result;
}

// The base of `dynamic` grows with every token, and keys that are kept would be of another one: it
// is that of the whole sequence. The factors of `longrope` change once, and all is read again then,
// as in transformers.
TurnFor InferenceModel::turnFor()
{
    const bool isOfWhole = m_config.ropes.front().scaling.type == RopeType::Dynamic;
    return [this, isOfWhole](std::int64_t tokens, std::int64_t whole) {
        return m_executor->constants().turnFor(isOfWhole ? whole : tokens);
    };
}

Result<AnswerScore> InferenceModel::scoreAnswers(const TokenSet& set, std::int64_t limit)
{
    return mr::scoreAnswers(*m_executor, set, m_config.vocab, m_micro.seqLen, limit, turnFor());
}

Result<Generated> InferenceModel::generate(const ReadPrompt& prompt, const GenerateOptions& options)
{
    Continuation what{*m_tokenizer, prompt.tokens, prompt.ends, m_micro.seqLen, m_config.vocab, {}};
    const std::int64_t whole = std::min(
        static_cast<std::int64_t>(prompt.tokens.size()) + options.maxTokens, m_micro.seqLen);
    what.next = [this, whole, turn = turnFor()](std::span<const TokenId> tokens, std::int64_t done,
                    std::span<float> out) -> Status {
        MR_ASSIGN(auto changed, turn(static_cast<std::int64_t>(tokens.size()), whole));
        const std::int64_t from = changed ? 0 : done;
        return m_executor->decoder().advance(
            tokens.subspan(static_cast<std::size_t>(from)), from, out);
    };
    return continueTokens(std::move(what), options);
}

Status InferenceModel::followLogits(std::span<const TokenId> tokens, std::size_t from,
    const std::function<Status(std::span<const float>)>& take)
{
    const auto whole = static_cast<std::int64_t>(tokens.size());
    std::vector<float> logits(static_cast<std::size_t>(m_config.vocab));
    MR_TRY(turnFor()(whole, whole).status());
    std::size_t done = 0;
    for (std::size_t next = from; next <= tokens.size(); done = next++) {
        MR_TRY(m_executor->decoder().advance(
            tokens.subspan(done, next - done), static_cast<std::int64_t>(done), logits));
        MR_TRY(take(logits));
    }
    return {};
}

std::int64_t roomFor(std::int64_t tokens, std::int64_t most)
{
    constexpr std::int64_t kStep = 256; // so that prompts of like length need the same memory
    return std::min(most, (tokens + kStep - 1) / kStep * kStep);
}

} // namespace mr
