#include "core/engine/inference.h"

#include "core/engine/run_master.h"
#include "core/engine/sampling.h"
#include "core/model/weights.h"
#include "core/plan/plan_builder.h"
#include "core/plan/policies.h"

#include <algorithm>
#include <cstring>

namespace mr {
namespace {

// Whole UTF-8 characters at the front of `text`; what is left waits for the next token.
std::size_t wholeCharacters(std::string_view text)
{
    std::size_t end = text.size();
    for (std::size_t back = 1; back <= 4 && back <= text.size(); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xC0U) == 0x80U)
            continue; // inside a character
        const std::size_t length = byte < 0x80U ? 1 : byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : 2;
        if (length > back)
            end = text.size() - back;
        break;
    }
    return end;
}

} // namespace

Result<std::unique_ptr<InferenceModel>> InferenceModel::describe(
    const std::string& folder, const InferenceOptions& options)
{
    auto model = std::unique_ptr<InferenceModel>(new InferenceModel);
    auto config = readModelConfig(folder);
    if (!config.ok())
        return config.status();
    model->m_config = std::move(config).value();
    const std::int64_t most = model->m_config.maxPositions;
    const std::int64_t seqLen = options.seqLen == 0 ? most : options.seqLen;
    if (seqLen > most)
        return Status::error(
            ErrorKind::InvalidArgument, folder + ": the model allows " + std::to_string(most) +
                                            " positions, not " + std::to_string(seqLen));
    model->m_table = buildParamTable(model->m_config);
    model->m_micro = {seqLen, options.microBatch, 1, options.compute};
    model->m_shape = modelShape(model->m_config, model->m_table, model->m_micro);
    model->m_step.recompute = true;
    model->m_step.precision = options.compute == DType::F32 ? Precision::F32 : Precision::BF16;
    model->m_plan = planInferenceMemory(model->m_step, model->m_shape);
    if (options.cache) {
        const TensorView cache = matrixView(nullptr, options.compute,
            model->m_config.layers * seqLen, model->m_config.qkvColumns());
        model->m_plan.items.push_back({Tier::Device, MemoryUse::KeyValueCache, {}, cache.bytes()});
    }
    return model;
}

Result<std::size_t> InferenceModel::deviceBytes(
    const std::string& folder, const InferenceOptions& options)
{
    auto model = describe(folder, options);
    if (!model.ok())
        return model.status();
    return model.value()->m_plan.bytes(Tier::Device);
}

Result<std::unique_ptr<InferenceModel>> InferenceModel::load(
    const std::string& folder, const InferenceOptions& options, Device& device)
{
    auto described = describe(folder, options);
    if (!described.ok())
        return described.status();
    std::unique_ptr<InferenceModel> model = std::move(described).value();
    auto tokenizer = Tokenizer::open(folder);
    if (!tokenizer.ok())
        return tokenizer.status();
    model->m_tokenizer = std::move(tokenizer).value();
    MR_TRY(model->loadWeightsOnto(folder, device));
    return model;
}

Status InferenceModel::loadWeightsOnto(const std::string& folder, Device& device)
{
    auto weights = openWeights(folder, m_config, m_table);
    MR_TRY(weights.status());
    auto tiers = TierStore::create(device, m_plan);
    if (!tiers.ok())
        return tiers.status();
    m_tiers = std::move(tiers).value();
    auto memory = RunMemory::create(*m_tiers, m_config, m_table, m_micro, 1, 2, true);
    if (!memory.ok())
        return memory.status();
    m_memory = std::move(memory).value();
    auto executor = StepExecutor::create(device, *m_memory, m_config, m_table, nullptr);
    if (!executor.ok())
        return executor.status();
    m_executor = std::move(executor).value();
    MR_TRY(m_executor->prepareMemory());
    return installMaster(*m_executor, *m_memory, *weights.value());
}

Result<EvalResult> InferenceModel::evaluate(const TokenSet& set)
{
    auto policy = makePolicy("resident", {});
    if (!policy.ok())
        return policy.status();
    auto plan = buildEvaluation(m_step, Carry{}, m_shape, Budget{}, Feedback{}, policy.value());
    if (!plan.ok())
        return plan.status();
    return mr::evaluate(*m_executor, plan.value(), set, {m_micro.seqLen, m_micro.microBatch, 1});
}

Result<AnswerScore> InferenceModel::scoreAnswers(const TokenSet& set, std::int64_t limit)
{
    return mr::scoreAnswers(*m_executor, set, m_config.vocab, m_micro.seqLen, limit);
}

Result<Generated> InferenceModel::generate(std::string_view prompt, const GenerateOptions& options)
{
    std::vector<TokenId> tokens;
    if (m_tokenizer->addsBos() && m_tokenizer->bos() >= 0)
        tokens.push_back(m_tokenizer->bos());
    MR_TRY(m_tokenizer->encode(prompt, tokens));
    if (tokens.empty())
        return Status::error(ErrorKind::InvalidArgument, "generate: the prompt has no token");
    if (static_cast<std::int64_t>(tokens.size()) >= m_micro.seqLen)
        return Status::error(ErrorKind::InvalidArgument,
            "generate: the prompt has " + std::to_string(tokens.size()) +
                " tokens, the model has room for " + std::to_string(m_micro.seqLen - 1));
    Generated out;
    out.promptTokens = static_cast<std::int64_t>(tokens.size());
    const std::size_t most =
        static_cast<std::size_t>(std::min(m_micro.seqLen, out.promptTokens + options.maxTokens));
    auto shown = m_tokenizer->decode(tokens);
    if (!shown.ok())
        return shown.status();
    std::string before = std::move(shown).value();
    const std::string promptText = before;
    std::vector<float> logits(static_cast<std::size_t>(m_config.vocab));
    std::int64_t done = 0;
    while (tokens.size() < most) {
        MR_TRY(m_executor->advance(
            std::span(tokens).subspan(static_cast<std::size_t>(done)), done, logits));
        done = static_cast<std::int64_t>(tokens.size());
        const TokenId next =
            sampleToken(logits, options.temperature, options.topP, options.seed, done);
        const auto& ends = m_config.eosTokens;
        out.ended =
            next == m_tokenizer->eos() || std::find(ends.begin(), ends.end(), next) != ends.end();
        if (out.ended)
            break;
        tokens.push_back(next);
        out.tokens.push_back(next);
        auto text = m_tokenizer->decode(tokens);
        if (!text.ok())
            return text.status();
        const std::size_t whole = wholeCharacters(text.value());
        if (whole <= before.size())
            continue;
        const std::string piece = text.value().substr(before.size(), whole - before.size());
        before = text.value().substr(0, whole);
        out.text += piece;
        if (options.onText && !options.onText(piece))
            break;
    }
    return out;
}

} // namespace mr
