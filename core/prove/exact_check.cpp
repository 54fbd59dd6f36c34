#include "core/prove/exact_check.h"

#include "core/base/philox.h"
#include "core/model/dora.h"
#include "core/model/prepared_base.h"
#include "core/model/weights.h"
#include "core/plan/cost_model.h"
#include "core/prove/plain_run.h"
#include "core/step/run_master.h"

namespace mr {
namespace {

constexpr std::int64_t kSequences = 12;
constexpr std::uint64_t kSeed = 7;
constexpr AdamwSettings kAdamw{0.9, 0.99, 1e-8, 0.1};
constexpr double kLearningRate = 1e-2;

std::vector<TokenSequence> randomTokens(std::int64_t vocab, std::int64_t seqLen)
{
    std::vector<TokenSequence> set(kSequences);
    for (std::int64_t s = 0; s < kSequences; ++s) {
        TokenSequence& sequence = set[static_cast<std::size_t>(s)];
        const std::int64_t length = seqLen + 1 - s % 5; // some are padded
        for (std::int64_t t = 0; t < length; ++t) {
            const auto random = philox(kSeed, static_cast<std::uint64_t>(s * seqLen * 2 + t));
            sequence.tokens.push_back(
                static_cast<TokenId>(random[0] % static_cast<std::uint32_t>(vocab)));
            const bool trained = t > 0 && (s % 3 != 0 || t > length / 2);
            sequence.trained.push_back(trained ? 1 : 0);
        }
    }
    return set;
}

Status train(Device& device, const TinyRun& run, PlainRun& plain, TinyResult& result)
{
    const auto set = randomTokens(run.config.vocab, run.seqLen);
    const BatchShape shape{run.seqLen, run.microBatch, run.accumulate};
    std::vector<TokenSequence> sequences(static_cast<std::size_t>(run.microBatch));
    Sampler sampler({kSeed, 0, 0, set.size()});
    result.losses.reserve(static_cast<std::size_t>(run.steps));
    result.norms.reserve(static_cast<std::size_t>(run.steps));
    std::vector<MicroBatchData> micros(static_cast<std::size_t>(run.accumulate));
    std::size_t allocationsBefore = 0;
    for (int s = 1; s <= run.steps; ++s) {
        double trained = 0.0;
        for (MicroBatchData& micro : micros) {
            for (TokenSequence& sequence : sequences)
                sequence = set[static_cast<std::size_t>(sampler.next())];
            fillMicroBatch(sequences, shape, micro);
            for (const std::int32_t target : micro.targets)
                trained += target >= 0 ? 1.0 : 0.0;
        }
        StepInputs inputs;
        inputs.micros = micros;
        inputs.lossScale = static_cast<float>(1.0 / trained);
        inputs.clipNorm = run.clipNorm;
        inputs.seed = kSeed;
        inputs.factors = adamwFactors(kAdamw, kLearningRate, s);
        MR_ASSIGN(auto step, plain.step(inputs));
        result.losses.push_back(step.lossSum / trained);
        result.norms.push_back(step.scalars.gradNorm);
        result.h2dBytes = step.h2dBytes;
        result.d2hBytes = step.d2hBytes;
        result.movedBytes = step.movedBytes;
        result.diskReadBytes = step.diskReadBytes;
        result.diskWrittenBytes = step.diskWrittenBytes;
        if (s == 1)
            allocationsBefore = device.memoryUsage().allocations;
    }
    result.plannedDisk = diskTraffic(plain.stepPlan(), plain.shape(), plain.precision());
    MR_TRY(plain.finishLateParts());
    const LinkTraffic traffic = linkTraffic(plain.stepPlan(), plain.shape(), plain.precision());
    result.plannedH2dBytes = traffic.hostToDeviceBytes;
    result.plannedD2hBytes = traffic.deviceToHostBytes;
    result.allocationsInSteps = device.memoryUsage().allocations - allocationsBefore;
    return {};
}

} // namespace

ModelConfig tinyConfig(bool tied)
{
    ModelConfig config;
    config.architecture = "LlamaForCausalLM";
    config.hidden = 24;
    config.block.intermediate = 40;
    config.layers = 3;
    config.block.heads = 4;
    config.block.kvHeads = 2;
    config.block.headDim = 6;
    config.vocab = 61;
    config.maxPositions = 32;
    config.rmsNormEps = 1e-5;
    config.initializerRange = 0.1;
    config.tiedEmbedding = tied;
    return config;
}

TinyRun inFp8(TinyRun run)
{
    run.config.hidden = 32;
    run.config.block.intermediate = 48;
    run.config.block.headDim = 8;
    run.seqLen = 16;
    run.compute = DType::BF16;
    run.fp8 = true;
    return run;
}

PlainRunSpec plainRunSpec(const TinyRun& run)
{
    PlainRunSpec spec;
    spec.config = run.config;
    spec.micro = {run.seqLen, run.microBatch, run.accumulate, run.compute, run.fp8};
    spec.micro.headPart = run.headPart;
    spec.micro.dropout = run.dropout;
    spec.micro.codedInputs = run.codedInputs;
    spec.policy = run.policy;
    spec.options = run.options;
    spec.light = run.light;
    spec.recompute = run.recompute;
    spec.clipNorm = run.clipNorm;
    spec.updateThreads = run.updateThreads;
    spec.adamw = kAdamw;
    spec.learningRate = kLearningRate;
    spec.disk = run.disk;
    spec.layers = run.layers;
    spec.adapter = run.adapter;
    return spec;
}

Status installInitialWeights(PlainRun& run, std::uint64_t seed)
{
    const ParamTable& table = run.table();
    const auto model = initialWeights(run.spec().config, wholeModel(table), seed);
    const auto adapter =
        run.spec().adapter ? freshAdapter(table, seed, *model, run.spec().micro.compute) : nullptr;
    MR_TRY(installMaster(run.executor(), run.memory(), adapter ? *adapter : *model));
    return installFrozen(run.executor(), table, *model).status();
}

namespace {

// The file that frozen weights are read from, where a part of them is on disk.
Status prepareBase(PlainRunSpec& spec)
{
    MR_ASSIGN(const MemoryPlan plan, PlainRun::plan(spec));
    if (plan.disk.frozen.empty() || spec.disk.folders.empty())
        return {};
    MR_ASSIGN(const ParamTable table, PlainRun::tableOf(spec));
    PreparedBaseSpec base{table, spec.micro.compute, spec.disk.folders.front(), "tiny"};
    base.open = [&]() -> Result<std::unique_ptr<MasterReader>> {
        return initialWeights(spec.config, wholeModel(table), kSeed);
    };
    MR_ASSIGN(spec.disk.base, preparedBase(base));
    return {};
}

} // namespace

Result<TinyResult> runTiny(Device& device, const TinyRun& run)
{
    TinyResult result;
    const MemoryUsage before = device.memoryUsage();
    PlainRunSpec spec = plainRunSpec(run);
    MR_TRY(prepareBase(spec));
    MR_ASSIGN(auto created, PlainRun::create(device, spec));
    PlainRun& plain = *created;
    MR_TRY(installInitialWeights(plain, kSeed));
    result.plannedDeviceBytes = plain.memoryPlan().bytes(Tier::Device);
    result.plannedHostBytes = plain.memoryPlan().bytes(Tier::PinnedHost);
    MR_TRY(train(device, run, plain, result));
    const MemoryUsage after = device.memoryUsage();
    result.peakDeviceBytes = after.devicePeakBytes - before.deviceBytes;
    result.peakHostBytes = after.pinnedPeakBytes - before.pinnedBytes;
    MR_ASSIGN(auto state, stateMaster(plain.executor(), plain.memory()));
    MR_ASSIGN(result.weightsHash, weightsHash(plain.table(), *state));
    return result;
}

} // namespace mr
