#include "core/prove/bench_step.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/device/adamw.h"
#include "core/prove/bench_peaks.h"
#include "core/prove/bench_rig.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run_inputs.h"
#include "core/telemetry/stall_ledger.h"

#include <millrace/library.h>
#include <millrace/run_spec.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mr {
namespace {

constexpr int kWarmUpSteps = 2;
constexpr int kTracedSteps = 3;

bool onHost(const Device& device)
{
    return device.info().threads > 0;
}

Precision resolve(PrecisionChoice choice, const Device& device)
{
    const bool slow = onHost(device) && device.info().instructionSet != "avx512_bf16";
    if (choice == PrecisionChoice::Auto)
        return slow || benchTypes(device.info()).size() == 1 ? Precision::F32 : Precision::BF16;
    return choice == PrecisionChoice::F32 ? Precision::F32 : Precision::BF16;
}

Budget budgetOf(const StepBenchSpec& spec, const Device& device, const HostMemory& host)
{
    constexpr std::uint64_t kReserve = std::uint64_t{1} << 30; // context, libraries, the screen
    const std::size_t all = device.info().memoryBytes;
    const std::size_t usable = onHost(device) || all < 2 * kReserve ? all : all - kReserve;
    Budget budget;
    budget.deviceBytes =
        spec.deviceMemoryBytes > 0 ? static_cast<std::size_t>(spec.deviceMemoryBytes) : usable;
    budget.hostBytes = spec.hostMemoryBytes > 0
                           ? static_cast<std::size_t>(spec.hostMemoryBytes)
                           : static_cast<std::size_t>(defaultHostBudget(host.availableBytes));
    return budget;
}

Result<PlainRunSpec> describe(const StepBenchSpec& spec, const Device& device)
{
    PlainRunSpec run;
    run.config = spec.config;
    run.config.trainsInputs = true; // the whole model is trained
    const std::int64_t most = spec.config.longestSequence();
    run.micro.seqLen = spec.seqLen > 0 ? spec.seqLen : defaultSeqLen(spec.config.maxPositions);
    if (run.micro.seqLen > most)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("seq-len {}: the model allows {} positions", run.micro.seqLen, most));
    if (spec.microBatch < 1 || spec.accumulate < 1 || spec.steps < 1)
        return Status::error(
            ErrorKind::InvalidArgument, "micro-batch, accumulate and steps must be at least 1");
    run.micro.microBatch = spec.microBatch;
    run.micro.microBatches = spec.accumulate;
    run.micro.compute =
        resolve(spec.precision, device) == Precision::F32 ? DType::F32 : DType::BF16;
    run.micro.headPart = kHeadPart;
    run.micro.codedInputs = spec.keepInputs == KeepInputs::Int8;
    run.micro.fp8 = spec.precision == PrecisionChoice::Fp8;
    run.options = spec.options;
    run.light = spec.light;
    const int cores = onHost(device) ? device.info().threads : inspectMachine().physicalCores;
    run.updateThreads = spec.updateThreads > 0 ? spec.updateThreads : std::max(1, cores / 2);
    run.host = readHostMemory("/").value_or(HostMemory{});
    run.budget = budgetOf(spec, device, run.host);
    return run;
}

void sayIfBelieved(const PlainRunSpec& run, const MemoryPlan& plan)
{
    const std::string believed =
        believedBudgetWords(run.budget.hostBytes, plan.bytes(Tier::PinnedHost), run.host);
    if (!believed.empty())
        log(LogLevel::Warning, believed);
}

// The first choice for the spec's open options that fits, as a run would choose.
Status choosePolicy(const StepBenchSpec& spec, PlainRunSpec& run)
{
    std::vector<std::string> policies{spec.policy};
    if (spec.policy == "auto")
        policies = {"resident", "zero-offload"};
    const bool isBlock = keepsInputsAlone(spec.keepInputs, spec.light.optimizer, spec.options);
    Status last;
    for (const std::string& policy : policies) {
        for (const Recompute how : kRecomputeKinds) {
            if (!isAllowed(how, recomputeOf(spec.recompute, isBlock)))
                continue;
            run.policy = policy;
            run.recompute = how;
            auto plan = PlainRun::plan(run);
            last = plan.status();
            if (plan.ok())
                sayIfBelieved(run, plan.value());
            if (last.ok() || last.kind() != ErrorKind::OutOfMemory)
                return last;
        }
    }
    return last;
}

// Runs steps and takes them apart; keeps no result of a step that failed.
class StepClock
{
public:
    explicit StepClock(PlainRun& run)
        : m_run(run)
        , m_micros(randomBatch(run.spec().config.vocab, run.spec().micro))
    {
        const MicroShape& micro = run.spec().micro;
        m_tokens = micro.tokens() * micro.microBatches;
    }

    Result<StepRow> step()
    {
        constexpr AdamwSettings kSettings{0.9, 0.999, 1e-8, 0.01};
        constexpr double kLearningRate = 1e-5;
        StepTimes times;
        times.beginNs = times.batchReadyNs = nowNs();
        StepInputs inputs;
        inputs.micros = m_micros;
        inputs.lossScale = static_cast<float>(1.0 / static_cast<double>(m_tokens));
        inputs.clipNorm = m_run.spec().clipNorm;
        inputs.factors = adamwFactors(kSettings, kLearningRate, ++m_count);
        MR_ASSIGN(auto result, m_run.step(inputs));
        times.endNs = result.endNs;
        times.tasks = result.tasks;
        if (!m_ledger)
            m_ledger.emplace(m_run.stepPlan().tasks.size());
        StepRow row = toStepRow(m_ledger->analyse(m_run.stepPlan(), times));
        row.step = m_count;
        row.tokens = row.lossTokens = m_tokens;
        row.loss = result.lossSum / static_cast<double>(m_tokens);
        row.gradNorm = result.scalars.gradNorm;
        row.h2dBytes = result.h2dBytes;
        row.d2hBytes = result.d2hBytes;
        return row;
    }

private:
    PlainRun& m_run;
    std::vector<MicroBatchData> m_micros;
    std::int64_t m_tokens = 0;
    std::int64_t m_count = 0;
    std::optional<StallLedger> m_ledger;
};

Status measureSteps(StepClock& clock, int count, StepBenchReport& report)
{
    for (int i = 0; i < kWarmUpSteps + count; ++i) {
        MR_ASSIGN(auto row, clock.step());
        if (!std::isfinite(row.loss))
            return Status::error(ErrorKind::Internal, "the loss of a benchmark step is not finite");
        if (i >= kWarmUpSteps)
            report.steps.push_back(row);
    }
    return {};
}

Status traceSteps(StepClock& clock, ActivityTrace& trace, StepBenchReport& report)
{
    TraceComparison both;
    MR_TRY(trace.begin());
    for (; both.steps < kTracedSteps; ++both.steps) {
        MR_ASSIGN(auto row, clock.step());
        both.computeNs += 1000 * row.computeUs;
        both.h2dBytes += row.h2dBytes;
        both.d2hBytes += row.d2hBytes;
    }
    auto seen = trace.end();
    MR_TRY(seen.status());
    both.seen = seen.value();
    report.trace = both;
    return {};
}

Status measure(Device& device, const PlainRunSpec& run, int steps, ActivityTrace* trace,
    StepBenchReport& report)
{
    const MemoryUsage before = device.memoryUsage();
    const std::int64_t begin = nowNs();
    MR_ASSIGN(auto plain, PlainRun::create(device, run));
    MR_TRY(installCheapWeights(*plain));
    report.prepareSeconds = 1e-9 * static_cast<double>(nowNs() - begin);
    report.parameters = plain->table().parameters;
    report.plannedDeviceBytes = plain->memoryPlan().bytes(Tier::Device);
    report.plannedHostBytes = plain->memoryPlan().bytes(Tier::PinnedHost);
    const auto micros = static_cast<double>(run.micro.microBatches);
    for (const GroupShape& group : plain->shape().groups)
        report.flopsPerStep += micros * (isForwardOnly(run.light.optimizer)
                                                ? 2.0 * group.forwardFlops
                                                : group.forwardFlops + group.backwardFlops);
    report.tokensPerStep = run.micro.tokens() * run.micro.microBatches;
    StepClock clock(*plain);
    MR_TRY(measureSteps(clock, steps, report));
    if (trace)
        MR_TRY(traceSteps(clock, *trace, report));
    const MemoryUsage after = device.memoryUsage();
    report.peakDeviceBytes = after.devicePeakBytes - before.deviceBytes;
    report.peakHostBytes = after.pinnedPeakBytes - before.pinnedBytes;
    return {};
}

struct BuiltIn {
    const char* name;
    std::int64_t hidden, intermediate, layers, vocab, seqLen;
};

constexpr BuiltIn kBuiltIns[] = {
    {"6M parameters", 256, 688, 6, 4096, 256},
    {"50M parameters", 640, 1728, 8, 16384, 512},
};

ModelConfig configOf(const BuiltIn& c)
{
    ModelConfig config = tinyConfig(true);
    config.hidden = c.hidden;
    config.block.intermediate = c.intermediate;
    config.layers = c.layers;
    config.block.headDim = 64;
    config.block.heads = c.hidden / 64;
    config.block.kvHeads = config.block.heads;
    config.vocab = c.vocab;
    config.maxPositions = c.seqLen;
    config.initializerRange = 0.02;
    return config;
}

} // namespace

StepRow StepBenchReport::typical() const
{
    if (steps.empty())
        return {};
    std::vector<StepRow> sorted = steps;
    std::sort(sorted.begin(), sorted.end(),
        [](const StepRow& a, const StepRow& b) { return a.wallUs < b.wallUs; });
    return sorted[sorted.size() / 2];
}

double StepBenchReport::tokensPerSecond() const
{
    const double seconds = 1e-6 * static_cast<double>(typical().wallUs);
    return seconds > 0.0 ? static_cast<double>(tokensPerStep) / seconds : 0.0;
}

double StepBenchReport::flopsPerSecond() const
{
    const double seconds = 1e-6 * static_cast<double>(typical().wallUs);
    return seconds > 0.0 ? flopsPerStep / seconds : 0.0;
}

Result<StepBenchReport> runStepBench(
    Device& device, const StepBenchSpec& spec, ActivityTrace* trace)
{
    MR_ASSIGN(auto described, describe(spec, device));
    PlainRunSpec& run = described;
    MR_TRY(choosePolicy(spec, run));
    StepBenchReport report;
    report.name = spec.name;
    report.policy = run.policy;
    report.precision = run.micro.compute == DType::F32 ? "fp32" : run.micro.fp8 ? "fp8" : "bf16";
    report.recompute = run.recompute;
    MR_TRY(measure(device, run, spec.steps, trace, report));
    // Last: its memory would be in the run's peak.
    MR_ASSIGN(report.peakFlops, matrixPeak(device, run.micro.compute));
    return report;
}

std::vector<StepBenchSpec> builtInStepBenches()
{
    std::vector<StepBenchSpec> specs;
    for (const BuiltIn& c : kBuiltIns) {
        for (const PrecisionChoice precision : {PrecisionChoice::F32, PrecisionChoice::BF16}) {
            StepBenchSpec spec;
            spec.name = c.name;
            spec.config = configOf(c);
            spec.seqLen = c.seqLen;
            spec.microBatch = 2;
            spec.policy = "resident";
            spec.precision = precision;
            spec.recompute = RecomputeChoice::None;
            specs.push_back(std::move(spec));
        }
    }
    return specs;
}

Result<std::vector<BenchRow>> benchStep(Device& device)
{
    std::vector<BenchRow> rows;
    const bool bf16 = benchTypes(device.info()).size() > 1;
    for (const StepBenchSpec& spec : builtInStepBenches()) {
        if (spec.precision == PrecisionChoice::BF16 && !bf16)
            continue;
        MR_ASSIGN(auto report, runStepBench(device, spec));
        const double seconds = 1e-6 * static_cast<double>(report.typical().wallUs);
        rows.push_back(benchRow(fmt::format("step {}, {} tokens, {}", spec.name,
                                    report.tokensPerStep, report.precision),
            report.flopsPerStep, seconds, report.peakFlops, "GFLOP/s"));
    }
    return rows;
}

} // namespace mr
