#include "core/engine/measure_rates.h"

#include "core/engine/plain_run_inputs.h"
#include "core/plan/cost_model.h"

#include <algorithm>
#include <vector>

namespace mr {
namespace {

constexpr int kWarmSteps = 1;
constexpr int kSteps = 5;

// The tasks of one kind (and place) of a run: the median of their seconds per unit of work.
class Samples
{
public:
    void add(double seconds, double work)
    {
        if (work > 0.0 && seconds > 0.0)
            m_each.push_back(seconds / work);
    }

    double median()
    {
        if (m_each.empty())
            return 0.0;
        const auto middle = m_each.begin() + static_cast<std::ptrdiff_t>(m_each.size() / 2);
        std::nth_element(m_each.begin(), middle, m_each.end());
        return *middle;
    }

    double rate()
    {
        const double each = median();
        return each > 0.0 ? 1.0 / each : 0.0;
    }

private:
    std::vector<double> m_each;
};

// Small copies are latency, not rate; a tiny model has no others.
class CopySamples
{
public:
    void add(double seconds, double bytes)
    {
        constexpr double kSmall = 64.0 * 1024.0;
        (bytes < kSmall ? m_small : m_large).add(seconds, bytes);
    }

    double rate()
    {
        const double rate = m_large.rate();
        return rate > 0.0 ? rate : m_small.rate();
    }

private:
    Samples m_small;
    Samples m_large;
};

struct LayerSamples {
    Samples forward;
    Samples backward;

    LayerSeconds seconds() { return {forward.median(), backward.median(), 0.0}; }
};

struct Sheet {
    LayerSamples embedding;
    LayerSamples block;
    LayerSamples head;
    Samples blockFlops; // seconds per flop, of forward and backward together
    Samples gradient;
    Samples deviceUpdate;
    Samples hostUpdate;
    CopySamples copyIn;
    CopySamples copyOut;
};

void readWork(const PlainRun& run, const Task& task, double seconds, Sheet& sheet)
{
    const int last = run.shape().layers() - 1;
    LayerSamples& layer = task.group.value == 0      ? sheet.embedding
                          : task.group.value == last ? sheet.head
                                                     : sheet.block;
    const bool forward = task.kind == TaskKind::Forward;
    (forward ? layer.forward : layer.backward).add(seconds, 1.0);
    if (&layer != &sheet.block || run.spec().recompute)
        return;
    const GroupShape& shape = run.shape().groups[static_cast<std::size_t>(task.group.value)];
    sheet.blockFlops.add(seconds, forward ? shape.forwardFlops : shape.backwardFlops);
}

void readTask(const PlainRun& run, const Task& task, double seconds, Sheet& sheet)
{
    const auto elements = static_cast<double>(task.elementCount);
    switch (task.kind) {
    case TaskKind::Forward:
    case TaskKind::Backward:
        return readWork(run, task, seconds, sheet);
    case TaskKind::UpdateOnDevice:
        return sheet.deviceUpdate.add(seconds, elements);
    case TaskKind::UpdateOnHost:
        return sheet.hostUpdate.add(seconds, elements);
    default:
        break;
    }
    const auto bytes =
        static_cast<double>(copyBytes(run.stepPlan(), task, run.shape(), run.precision()));
    if (task.lane == Lane::CopyIn)
        sheet.copyIn.add(seconds, bytes);
    else if (task.lane == Lane::CopyOut)
        sheet.copyOut.add(seconds, bytes);
}

// Rounding and norm of a group stand side by side in the plan; they are one rate.
void readGradients(const PlainRun& run, std::span<const Interval> tasks, Sheet& sheet)
{
    const StepPlan& plan = run.stepPlan();
    double finish = 0.0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
        const Task& task = plan.tasks[i];
        const double seconds = 1e-9 * static_cast<double>(tasks[i].endNs - tasks[i].beginNs);
        if (task.kind == TaskKind::FinishGradient)
            finish = seconds;
        else if (task.kind == TaskKind::NormPart)
            sheet.gradient.add(finish + seconds, static_cast<double>(task.elementCount));
    }
}

void readStep(const PlainRun& run, const StepResult& result, Sheet& sheet)
{
    const StepPlan& plan = run.stepPlan();
    for (std::size_t i = 0; i < plan.tasks.size(); ++i)
        readTask(run, plan.tasks[i],
            1e-9 * static_cast<double>(result.tasks[i].endNs - result.tasks[i].beginNs), sheet);
    readGradients(run, result.tasks, sheet);
}

PlainRunSpec runSpecOf(const RateSubject& subject, bool recompute)
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

Status runSteps(Device& device, const RateSubject& subject, bool recompute, Sheet& sheet)
{
    auto run = PlainRun::create(device, runSpecOf(subject, recompute));
    MR_TRY(run.status());
    MR_TRY(installCheapWeights(*run.value()));
    const std::vector<MicroBatchData> micros =
        randomBatch(subject.config.vocab, run.value()->spec().micro);
    StepInputs inputs;
    inputs.micros = micros;
    inputs.lossScale = 1.0F / static_cast<float>(micros[0].ids.size());
    inputs.clipNorm = 1.0;
    for (int s = 1; s <= kWarmSteps + kSteps; ++s) {
        inputs.factors = adamwFactors({}, 1e-4, s);
        auto result = run.value()->step(inputs);
        MR_TRY(result.status());
        if (s > kWarmSteps)
            readStep(*run.value(), result.value(), sheet);
    }
    return {};
}

// Layers that any machine can try, of the proportions of published models.
ModelConfig standIn()
{
    ModelConfig config;
    config.architecture = "LlamaForCausalLM";
    config.hidden = 1024;
    config.intermediate = 2816;
    config.heads = 16;
    config.kvHeads = 8;
    config.headDim = 64;
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
    std::string words = "cpu " + machine.cpuName + " " + machine.instructionSet + ", " +
                        std::to_string(spec.threads) + " threads";
    if (spec.linkBytesPerSecond > 0.0)
        words += ", link " + std::to_string(static_cast<std::int64_t>(spec.linkBytesPerSecond));
    return words;
}

std::string modelWords(const RateSubject& subject)
{
    const ModelConfig& c = subject.config;
    std::string words = subject.compute == DType::F32 ? "fp32" : "bf16";
    for (const std::int64_t number : {c.hidden, c.intermediate, c.heads, c.kvHeads, c.headDim,
             c.vocab, subject.seqLen, subject.microBatch})
        words += " " + std::to_string(number);
    return words + (c.tiedEmbedding ? " tied" : "") + (subject.standIn ? " stand-in" : "");
}

} // namespace

Result<RateSubject> rateSubject(
    const RunSpec& spec, const ModelConfig& config, const MachineInfo& machine)
{
    RateSubject subject;
    subject.config = config;
    subject.config.layers = std::min<std::int64_t>(config.layers, 2);
    subject.seqLen = spec.seqLen;
    subject.microBatch = spec.microBatch;
    subject.compute = spec.precision == PrecisionChoice::F32 ? DType::F32 : DType::BF16;
    subject.updateThreads = static_cast<int>(std::max<std::int64_t>(1, spec.threads / 2));
    const std::uint64_t most =
        spec.device == DeviceChoice::Cuda ? spec.deviceMemoryBytes : machine.availableBytes / 4;
    auto plan = PlainRun::plan(runSpecOf(subject, false));
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
        plan = PlainRun::plan(runSpecOf(subject, false));
        MR_TRY(plan.status());
    }
    subject.deviceBytes = plan.value().bytes(Tier::Device);
    subject.key = deviceWords(spec, machine) + "; " + std::to_string(subject.updateThreads) +
                  " update threads; " + modelWords(subject);
    return subject;
}

Result<Feedback> measureRates(Device& device, const RateSubject& subject)
{
    Sheet sheet;
    MR_TRY(runSteps(device, subject, false, sheet));
    Feedback rates;
    rates.hostToDeviceBytesPerSecond = sheet.copyIn.rate();
    rates.deviceToHostBytesPerSecond = sheet.copyOut.rate();
    rates.hostAdamwElementsPerSecond = sheet.hostUpdate.rate();
    rates.deviceAdamwElementsPerSecond = sheet.deviceUpdate.rate();
    rates.deviceFlopsPerSecond = sheet.blockFlops.rate();
    rates.deviceGradientElementsPerSecond = sheet.gradient.rate();
    if (subject.standIn)
        return rates;
    rates.embedding = sheet.embedding.seconds();
    rates.block = sheet.block.seconds();
    rates.head = sheet.head.seconds();
    Sheet again;
    MR_TRY(runSteps(device, subject, true, again));
    rates.block.recompute = std::max(0.0, again.block.backward.median() - rates.block.backward);
    return rates;
}

} // namespace mr
