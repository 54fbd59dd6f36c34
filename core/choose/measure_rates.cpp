#include "core/choose/measure_rates.h"

#include "core/choose/rate_estimator.h"
#include "core/choose/trained_part.h"
#include "core/prove/plain_run_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mr {
namespace {

constexpr int kWarmSteps = 1;
constexpr int kSteps = 5;

PlainRunSpec runSpecOf(const RateSubject& subject, Recompute recompute)
{
    PlainRunSpec spec;
    spec.config = subject.config;
    spec.micro = {subject.seqLen, subject.microBatch, 1, subject.compute};
    spec.policy = "deep-optimizer-states";
    spec.options = {{"device-share", "0.5"}, {"tile", "16MiB"}};
    spec.recompute = recompute;
    spec.updateThreads = subject.updateThreads;
    return spec;
}

Status runSteps(
    Device& device, const RateSubject& subject, Recompute recompute, RateEstimator& estimator)
{
    MR_ASSIGN(auto run, PlainRun::create(device, runSpecOf(subject, recompute)));
    MR_TRY(installCheapWeights(*run));
    const ModelConfig& config = subject.config;
    const std::int64_t words = config.layerInput > 0 ? config.inputVocab : config.vocab;
    const std::vector<MicroBatchData> micros = randomBatch(words, run->spec().micro);
    StepInputs inputs;
    inputs.micros = micros;
    inputs.lossScale = 1.0F / static_cast<float>(micros[0].ids.size());
    inputs.clipNorm = 1.0;
    for (int s = 1; s <= kWarmSteps + kSteps; ++s) {
        inputs.factors = adamwFactors({}, 1e-4, s);
        MR_ASSIGN(auto result, run->step(inputs));
        if (s > kWarmSteps)
            estimator.read(
                run->stepPlan(), result.tasks, {run->shape(), run->precision(), recompute});
    }
    return {};
}

// Layers that any machine can try, of the proportions of published models.
ModelConfig standIn()
{
    ModelConfig config;
    config.architecture = "LlamaForCausalLM";
    config.hidden = 1024;
    config.block.intermediate = 2816;
    config.block.heads = 16;
    config.block.kvHeads = 8;
    config.block.headDim = 64;
    config.vocab = 8192;
    config.maxPositions = 4096;
    config.rmsNormEps = 1e-5;
    return config;
}

constexpr std::int64_t kStandInTokens = 512;

std::string deviceWords(const RunSpec& spec, const MachineInfo& machine)
{
    if (spec.device == DeviceChoice::Cuda)
        return "cuda " + (machine.gpus.empty() ? std::string("none") : machine.gpus.front().name);
    std::string words =
        fmt::format("cpu {} {}, {} threads", machine.cpuName, machine.instructionSet, spec.threads);
    if (spec.linkBytesPerSecond > 0.0)
        words += fmt::format(", link {}", static_cast<std::int64_t>(spec.linkBytesPerSecond));
    return words;
}

std::string kindWords(const ModelConfig& c, const BlockKind& kind, std::int64_t seqLen)
{
    std::string words;
    if (kind.isDelta())
        words += fmt::format(" state {} {} {} {} {}", kind.delta.keyHeads, kind.delta.valueHeads,
            kind.delta.keyDim, kind.delta.valueDim, kind.taps);
    const BlockKind& first = c.kindOf(0);
    if (kind.headDim != first.headDim || kind.kvHeads != first.kvHeads ||
        kind.intermediate != first.intermediate)
        words += fmt::format(" {} {} {}", kind.intermediate, kind.kvHeads, kind.headDim);
    words += kind.keyValues == KeyValueSource::KeysAreValues ? " keys as values" : "";
    words += kind.readsKeys() ? " keys of another" : "";
    words += kind.normsValues ? " normed values" : "";
    if (kind.layerInput > 0)
        words += fmt::format(" inputs {}", kind.layerInput);
    words += kind.gatesAttention ? " gated" : "";
    words += kind.normsQueries() ? " normed heads" : "";
    words += kind.branchNorms ? " normed branches" : "";
    words += kind.inputNorms ? "" : " plain input";
    words += kind.branchScale != 1.0 ? " scaled branches" : "";
    words += kind.geluGate ? " gelu" : "";
    words += kind.attentionCap > 0.0 ? " capped scores" : "";
    const std::int64_t turning = c.ropes[static_cast<std::size_t>(kind.rope)].rotaryDim;
    if (!kind.turns)
        words += " still";
    else if (turning > 0)
        words += fmt::format(" turning {}", turning);
    if (kind.window > 0 && kind.window < seqLen)
        words += fmt::format(" window {}", kind.window);
    return words;
}

std::string modelWords(const RateSubject& subject)
{
    const ModelConfig& c = subject.config;
    const BlockKind& first = c.kindOf(0);
    std::string words = subject.compute == DType::F32 ? "fp32" : "bf16";
    for (const std::int64_t number : {c.hidden, first.intermediate, first.heads, first.kvHeads,
             first.headDim, c.vocab, subject.seqLen, subject.microBatch})
        words += fmt::format(" {}", number);
    std::string kinds;
    for (const BlockKind& kind : c.kinds())
        kinds += (kinds.empty() ? "" : " and") + kindWords(c, kind, subject.seqLen);
    words += kinds;
    words += c.logitCap > 0.0 ? " capped logits" : "";
    return words + (c.tiedEmbedding ? " tied" : "") + (subject.standIn ? " stand-in" : "");
}

// The first blocks, as many as repeat: 4 where every fourth is of another kind. At least two; 0 if
// it takes more than a few.
std::int64_t repeatingBlocks(const ModelConfig& config)
{
    constexpr std::int64_t kFew = 4;
    for (std::int64_t n = 2; n <= std::min(kFew, config.layers); ++n) {
        bool repeats = true;
        for (std::int64_t block = n; repeats && block < config.layers; ++block)
            repeats = config.kindOf(block) == config.kindOf(block - n);
        if (repeats)
            return n;
    }
    return 0;
}

// So few that every machine can try them, of each kind as large a share as in the model, or one.
void keepFewBlocks(ModelConfig& config)
{
    std::vector<BlockKind> few;
    for (std::int64_t block = 0; block < repeatingBlocks(config); ++block)
        few.push_back(config.kindOf(block));
    if (few.empty())
        few = config.kinds();
    config.blocks = std::move(few);
    config.layers = std::ssize(config.blocks);
    config.outputScales.clear();
    for (std::int64_t block = 0; block < config.layers; ++block)
        if (const BlockKind& kind = config.kindOf(block); kind.givesKeys())
            config.keyGivers[static_cast<std::size_t>(kind.sharedKeys)] = block;
}

// A table of few rows lies with the embedding: a step reads no more than those of its tokens.
void keepFewInputs(ModelConfig& config)
{
    constexpr std::int64_t kFewRows = 1024;
    config.trainsInputs = config.layerInput > 0;
    config.inputVocab = std::min({config.inputVocab, config.vocab, kFewRows});
}

} // namespace

Result<RateSubject> rateSubject(
    const RunSpec& spec, const ModelConfig& config, const MachineInfo& machine)
{
    RateSubject subject;
    subject.config = config;
    keepFewBlocks(subject.config);
    keepFewInputs(subject.config);
    subject.seqLen = spec.seqLen;
    subject.microBatch = spec.microBatch;
    subject.compute = spec.precision == PrecisionChoice::F32 ? DType::F32 : DType::BF16;
    subject.updateThreads = static_cast<int>(std::max<std::int64_t>(1, spec.threads / 2));
    const std::uint64_t most =
        spec.device == DeviceChoice::Cuda ? spec.deviceMemoryBytes : machine.availableBytes / 4;
    auto plan = PlainRun::plan(runSpecOf(subject, Recompute::None));
    MR_TRY(plan.status());
    const auto needs = [](const MemoryPlan& p) {
        return p.bytes(Tier::Device) + p.bytes(Tier::PinnedHost);
    };
    if (needs(plan.value()) > most) {
        subject.standIn = true;
        subject.config = standIn();
        subject.config.layers = 2;
        subject.seqLen = std::min(spec.seqLen, kStandInTokens);
        subject.microBatch = 1;
        plan = PlainRun::plan(runSpecOf(subject, Recompute::None));
        MR_TRY(plan.status());
    }
    subject.deviceBytes = plan.value().bytes(Tier::Device);
    subject.key = fmt::format("{}; {} update threads; {}", deviceWords(spec, machine),
        subject.updateThreads, modelWords(subject));
    const std::string trained = trainedWords(spec);
    subject.runKey = trained.empty() ? subject.key : subject.key + "; " + trained;
    return subject;
}

Result<Feedback> measureRates(Device& device, const RateSubject& subject)
{
    RateEstimator estimator;
    MR_TRY(runSteps(device, subject, Recompute::None, estimator));
    Feedback rates = estimator.rates({});
    if (subject.standIn) { // the seconds are those of other layers
        rates.forgetLayers();
        return rates;
    }
    for (const Recompute how : {Recompute::Cheap, Recompute::Block}) {
        RateEstimator again;
        MR_TRY(runSteps(device, subject, how, again));
        Feedback longer = again.rates({});
        for (int kind = 0; kind < kMostBlockKinds; ++kind) {
            LayerSeconds& block = rates.blockOf(kind);
            const double more = longer.blockOf(kind).backward - block.backward;
            (how == Recompute::Cheap ? block.cheap : block.recompute) = std::max(0.0, more);
        }
    }
    return rates;
}

} // namespace mr
