#include "core/engine/exact_check.h"

#include "core/base/philox.h"
#include "core/engine/checkpoint.h"
#include "core/engine/run_memory.h"
#include "core/engine/step_executor.h"
#include "core/optim/host_updater.h"
#include "core/plan/cost_model.h"
#include "core/plan/plan_builder.h"
#include "core/plan/plan_check.h"
#include "core/plan/policies.h"
#include "core/plan/traversal.h"

#include <memory>

namespace mr {
namespace {

constexpr std::int64_t kSequences = 12;
constexpr std::uint64_t kSeed = 7;

TokenSet randomTokens(std::int64_t vocab, std::int64_t seqLen)
{
    TokenSet set;
    set.starts.push_back(0);
    for (std::int64_t s = 0; s < kSequences; ++s) {
        const std::int64_t length = seqLen + 1 - s % 5; // some are padded
        for (std::int64_t t = 0; t < length; ++t) {
            const auto random = philox(kSeed, static_cast<std::uint64_t>(s * seqLen * 2 + t));
            set.tokens.push_back(
                static_cast<TokenId>(random[0] % static_cast<std::uint32_t>(vocab)));
            const bool trained = t > 0 && (s % 3 != 0 || t > length / 2);
            set.trained.push_back(trained ? 1 : 0);
            set.trainedTokens += trained ? 1 : 0;
        }
        set.starts.push_back(set.tokens.size());
    }
    return set;
}

// What one tiny run is made of, in the order it is taken apart in reverse.
struct Parts {
    ModelConfig config;
    ParamTable table;
    MicroShape micro;
    ModelShape shape;
    StepSpec step;
    OffloadPolicy policy;
    MemoryPlan plan;
    FailureLatch latch;
    std::unique_ptr<TierStore> tiers;
    std::unique_ptr<RunMemory> memory;
    std::unique_ptr<StepExecutor> executor;
    std::unique_ptr<HostUpdater> updater; // goes first: its jobs point to the executor's events
};

Status describe(const TinyRun& run, Parts& parts)
{
    parts.config = run.config;
    parts.table = buildParamTable(parts.config);
    parts.micro = {run.seqLen, run.microBatch, run.accumulate, run.compute};
    parts.shape = modelShape(parts.config, parts.table, parts.micro);
    parts.step.microBatches = static_cast<int>(run.accumulate);
    parts.step.clipNorm = run.clipNorm;
    parts.step.recompute = run.recompute;
    parts.step.precision = run.compute == DType::F32 ? Precision::F32 : Precision::BF16;
    auto policy = makePolicy(run.policy, run.options);
    if (!policy.ok())
        return policy.status();
    parts.policy = std::move(policy).value();
    auto plan = planMemory(parts.step, parts.shape, Budget{}, Feedback{}, parts.policy);
    if (!plan.ok())
        return plan.status();
    parts.plan = std::move(plan).value();
    return {};
}

Status build(Device& device, const TinyRun& run, Parts& parts)
{
    auto tiers = TierStore::create(device, parts.plan);
    if (!tiers.ok())
        return tiers.status();
    parts.tiers = std::move(tiers).value();
    const int micros = parts.step.microBatches;
    auto memory = RunMemory::create(*parts.tiers, parts.config, parts.table, parts.micro,
        microBatchesInFlight(*parts.policy.traversal, parts.shape.layers(), micros),
        batchBuffers(parts.policy, parts.shape.layers(), micros), run.recompute);
    if (!memory.ok())
        return memory.status();
    parts.memory = std::move(memory).value();
    parts.updater = std::make_unique<HostUpdater>(run.updateThreads, parts.latch);
    auto executor =
        StepExecutor::create(device, *parts.memory, parts.config, parts.table, parts.updater.get());
    if (!executor.ok())
        return executor.status();
    parts.executor = std::move(executor).value();
    MR_TRY(parts.executor->prepareMemory());
    const MasterBuffers master(parts.table);
    initializeWeights(parts.config, parts.table, kSeed, master.views());
    return installMaster(*parts.executor, *parts.memory, master.views());
}

Status train(Device& device, const TinyRun& run, Parts& parts, TinyResult& result)
{
    const TokenSet set = randomTokens(parts.config.vocab, run.seqLen);
    const BatchShape shape{run.seqLen, run.microBatch, run.accumulate};
    std::vector<std::int64_t> sequences(static_cast<std::size_t>(run.microBatch));
    Sampler sampler({kSeed, 0, 0, static_cast<std::uint64_t>(set.count())});
    const Budget budget{parts.plan.bytes(Tier::Device), parts.plan.bytes(Tier::PinnedHost), 0};
    PlanBuilder builder(parts.shape, budget, Feedback{}, parts.policy);
    BuiltStep built;
    result.losses.reserve(static_cast<std::size_t>(run.steps));
    result.norms.reserve(static_cast<std::size_t>(run.steps));
    std::vector<MicroBatchData> micros(static_cast<std::size_t>(run.accumulate));
    std::size_t allocationsBefore = 0;
    for (int s = 1; s <= run.steps; ++s) {
        double trained = 0.0;
        for (MicroBatchData& micro : micros) {
            for (std::int64_t& sequence : sequences)
                sequence = sampler.next();
            fillMicroBatch(set, sequences, shape, micro);
            for (const std::int32_t target : micro.targets)
                trained += target >= 0 ? 1.0 : 0.0;
        }
        parts.step.step = s;
        const Carry in = built.out;
        MR_TRY(builder.buildPlanInto(parts.step, in, Feedback{}, built));
        if (s <= 2) // later plans differ in versions only
            MR_TRY(checkPlan(built.plan, in, built.out, parts.shape, budget, parts.policy));
        StepInputs inputs;
        inputs.micros = micros;
        inputs.lossScale = static_cast<float>(1.0 / trained);
        inputs.clipNorm = run.clipNorm;
        inputs.factors = adamwFactors({0.9, 0.99, 1e-8, 0.1}, 1e-2, s);
        auto step = parts.executor->run(built.plan, inputs);
        if (!step.ok())
            return step.status();
        result.losses.push_back(step.value().lossSum / trained);
        result.norms.push_back(step.value().scalars.gradNorm);
        result.h2dBytes = step.value().h2dBytes;
        result.d2hBytes = step.value().d2hBytes;
        const double seconds =
            1e-9 * static_cast<double>(step.value().endNs - step.value().beginNs);
        if (s == 1)
            allocationsBefore = device.memoryUsage().allocations;
        else if (result.stepSeconds == 0.0 || seconds < result.stepSeconds)
            result.stepSeconds = seconds;
    }
    const LinkTraffic traffic = linkTraffic(built.plan, parts.shape, parts.step.precision);
    result.plannedH2dBytes = traffic.hostToDeviceBytes;
    result.plannedD2hBytes = traffic.deviceToHostBytes;
    for (const GroupShape& group : parts.shape.groups)
        result.stepFlops +=
            static_cast<double>(run.accumulate) *
            (group.forwardFlops * (run.recompute ? 2.0 : 1.0) + group.backwardFlops);
    result.allocationsInSteps = device.memoryUsage().allocations - allocationsBefore;
    return {};
}

} // namespace

ModelConfig tinyConfig(bool tied)
{
    ModelConfig config;
    config.architecture = "LlamaForCausalLM";
    config.hidden = 24;
    config.intermediate = 40;
    config.layers = 3;
    config.heads = 4;
    config.kvHeads = 2;
    config.headDim = 6;
    config.vocab = 61;
    config.maxPositions = 32;
    config.rmsNormEps = 1e-5;
    config.initializerRange = 0.1;
    config.tiedEmbedding = tied;
    return config;
}

Result<TinyResult> runTiny(Device& device, const TinyRun& run)
{
    TinyResult result;
    Parts parts;
    MR_TRY(describe(run, parts));
    const MemoryUsage before = device.memoryUsage();
    MR_TRY(build(device, run, parts));
    result.plannedDeviceBytes = parts.plan.bytes(Tier::Device);
    result.plannedHostBytes = parts.plan.bytes(Tier::PinnedHost);
    MR_TRY(train(device, run, parts, result));
    const MemoryUsage after = device.memoryUsage();
    result.peakDeviceBytes = after.devicePeakBytes - before.deviceBytes;
    result.peakHostBytes = after.pinnedPeakBytes - before.pinnedBytes;
    auto snapshot = MasterSnapshot::take(*parts.executor, *parts.memory);
    if (!snapshot.ok())
        return snapshot.status();
    result.weightsHash = weightsHash(parts.table, snapshot.value().views());
    return result;
}

} // namespace mr
