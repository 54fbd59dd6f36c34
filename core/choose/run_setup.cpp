#include "core/choose/run_setup.h"

#include "core/choose/lighter_choice.h"
#include "core/choose/measure_rates.h"
#include "core/choose/policy_choice.h"
#include "core/choose/rate_estimator.h"
#include "core/choose/trained_part.h"
#include "core/model/base_files.h"
#include "core/plan/traversal.h"
#include "core/tokenizer/unicode_text.h"

#include <millrace/library.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

namespace mr {
namespace {

constexpr double kDefaultLearningRate = 2e-5;
constexpr double kDefaultWeightDecay = 0.01;
constexpr double kAdapterLearningRate = 2e-4; // trl's documentation: ten times that of all weights
constexpr double kDefaultWarmup = 0.03;
constexpr std::int64_t kDefaultEvaluations = 10;

PrecisionChoice defaultPrecision(const MachineInfo& machine)
{
    return machine.instructionSet == "avx512_bf16" ? PrecisionChoice::BF16 : PrecisionChoice::F32;
}

std::int64_t defaultThreads(const MachineInfo& machine)
{
    return std::max(1, std::min(machine.physicalCores, machine.threads));
}

std::string defaultName(const RunSpec& spec)
{
    const auto last = [](const std::string& path) {
        const std::filesystem::path p = std::filesystem::path(path).lexically_normal();
        return p.has_filename() ? p.stem().string() : p.parent_path().filename().string();
    };
    std::string name = last(spec.modelDir.empty() ? spec.scratchConfig : spec.modelDir);
    if (!spec.data.empty())
        name += " on " + last(spec.data.front().path);
    return name;
}

// A run must be found again from another working directory.
void makePathsAbsolute(RunSpec& spec)
{
    const auto absolute = [](std::string& path) {
        std::error_code error;
        if (!path.empty())
            path = std::filesystem::absolute(path, error).lexically_normal().string();
    };
    for (std::string* path : {&spec.modelDir, &spec.scratchConfig, &spec.scratchTokenizer,
             &spec.adapterDir, &spec.outDir, &spec.database})
        absolute(*path);
    for (std::string& path : spec.diskPaths)
        absolute(path);
    for (auto* sources : {&spec.data, &spec.evalData})
        for (DataSource& source : *sources)
            absolute(source.path);
}

// The record of a run is JSON, which holds UTF-8 only: a run could not find such a path again.
Status refuseUnrecordablePaths(const RunSpec& spec)
{
    std::vector<std::string_view> paths = {
        spec.modelDir, spec.scratchConfig, spec.scratchTokenizer, spec.adapterDir, spec.database};
    paths.insert(paths.end(), spec.diskPaths.begin(), spec.diskPaths.end());
    for (const auto* sources : {&spec.data, &spec.evalData})
        for (const DataSource& source : *sources)
            paths.emplace_back(source.path);
    for (const std::string_view path : paths)
        if (!isUtf8(path))
            return Status::error(ErrorKind::InvalidArgument,
                std::string(path) + ": this path is not UTF-8, so a stopped run could not find it "
                                    "again; rename it, or give a link to it");
    return {};
}

void resolveMethod(RunSpec& spec)
{
    const bool isAdapter = isAdapterRun(spec);
    if (spec.learningRate == 0.0)
        spec.learningRate = isAdapter ? kAdapterLearningRate : kDefaultLearningRate;
    if (spec.weightDecay < 0.0)
        spec.weightDecay = isAdapter ? 0.0 : kDefaultWeightDecay;
    if (isAdapter && spec.alpha < 0.0)
        spec.alpha = static_cast<double>(spec.rank);
    if (isAdapter && spec.dropout < 0.0)
        spec.dropout = 0.0;
}

WeightFormat defaultWeights(const RunSpec& spec)
{
    const bool isWhole = !isLight(spec.optimizer) || spec.precision == PrecisionChoice::F32;
    return isWhole ? WeightFormat::F32 : WeightFormat::Bits24;
}

// The first update of a light optimizer is as large as its rate in every place, like one of signs.
std::int64_t defaultWarmup(const RunSpec& spec)
{
    constexpr double kLightWarmup = 0.05;
    constexpr std::int64_t kLeastLightWarmup = 20;
    const auto steps = static_cast<double>(spec.steps);
    if (!isLight(spec.optimizer))
        return std::llround(kDefaultWarmup * steps);
    const std::int64_t warmup =
        std::max<std::int64_t>(kLeastLightWarmup, std::llround(kLightWarmup * steps));
    return std::min(warmup, spec.steps / 2);
}

// All that needs the model but not the memory plan.
Status resolveNumbers(RunSetup& setup, const MachineInfo& machine, std::int64_t trainRows)
{
    RunSpec& spec = setup.spec;
    const std::int64_t most = setup.config.longestSequence();
    if (spec.seqLen == 0)
        spec.seqLen = defaultSeqLen(setup.config.maxPositions);
    if (spec.seqLen > most)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "seq-len {} is longer than the model allows ({} positions); choose at most that",
                spec.seqLen, most));
    resolveMethod(spec);
    if (spec.precision == PrecisionChoice::Auto)
        spec.precision = defaultPrecision(machine);
    if (spec.weights == WeightFormat::Auto)
        spec.weights = defaultWeights(spec);
    if (spec.device == DeviceChoice::Auto)
        spec.device = DeviceChoice::Cpu;
    if (spec.threads == 0)
        spec.threads = defaultThreads(machine);
    if (spec.name.empty())
        spec.name = defaultName(spec);
    if (spec.steps == 0)
        spec.steps = stepCount(spec, trainRows);
    if (spec.warmupSteps < 0)
        spec.warmupSteps = defaultWarmup(spec);
    if (spec.evalEvery < 0)
        spec.evalEvery = std::max<std::int64_t>(1, spec.steps / kDefaultEvaluations);
    setup.micro = {spec.seqLen, spec.microBatch, spec.accumulate,
        spec.precision == PrecisionChoice::F32 ? DType::F32 : DType::BF16,
        spec.precision == PrecisionChoice::Fp8};
    if (spec.headPart < 0)
        spec.headPart = kHeadPart;
    setup.micro.headPart = spec.headPart;
    setup.micro.codedInputs = spec.keepInputs == KeepInputs::Int8;
    setAdapterMemory(setup.table, isAdapterRun(spec) ? spec.dropout : 0.0, setup.micro);
    setup.shape = modelShape(setup.config, setup.table, setup.micro);
    setup.step.microBatches = static_cast<int>(spec.accumulate);
    setup.step.clipNorm = spec.clipNorm;
    setup.step.precision = setup.micro.compute == DType::F32 ? Precision::F32 : Precision::BF16;
    return {};
}

// Where the weights are not there yet, as in a plan by a config alone, they are taken to have the
// type of the run.
bool hasOwnForm(const RunSetup& setup)
{
    if (setup.spec.modelDir.empty() || setup.spec.method == "qlora")
        return false;
    auto own = ownFiles(setup.spec.modelDir, setup.config, setup.table, setup.micro.compute);
    return own.ok() ? own.value().has_value() : setup.micro.compute == DType::BF16;
}

void findBase(RunSetup& setup, const RateCache& cache)
{
    const PolicyInfo* asked = findPolicy(setup.spec.policy);
    const bool mayRead = setup.shape.readsFrozen && (asked == nullptr || asked->usesDisk);
    setup.readsOwnFiles = mayRead && hasOwnForm(setup);
    std::vector<std::string> folders;
    if (setup.readsOwnFiles)
        folders = {setup.spec.modelDir};
    else if (!setup.spec.diskPaths.empty())
        folders = {setup.spec.diskPaths.front()};
    if (auto drive = inspectScratchSet(folders, cache); drive.ok())
        setup.baseDrive = std::move(drive).value();
}

// Folders need not exist where the spec gives the disk space: a plan may be for another machine.
Status findScratch(RunSetup& setup, const RateCache& cache)
{
    auto scratch = inspectScratchSet(setup.spec.diskPaths, cache);
    if (setup.spec.diskBytes == 0)
        MR_TRY(scratch.status());
    if (scratch.ok())
        setup.scratch = std::move(scratch).value();
    return {};
}

// Scratch files that fill the disk to the last byte would keep all other programs from writing. A
// size that the user gave holds, as for the other tiers: opening the files shows whether it is
// there.
std::uint64_t diskBudget(const RunSetup& setup)
{
    return setup.spec.diskBytes > 0 ? setup.spec.diskBytes : setup.scratch.roomBytes() / 20 * 19;
}

Status resolveBudgets(RunSetup& setup, const MachineInfo& machine)
{
    RunSpec& spec = setup.spec;
    if (spec.deviceMemoryBytes == 0) {
        PolicyTrial resident{PolicyId::Resident, {}, leastOf(spec.recompute)};
        const PolicyInfo* asked = findPolicy(spec.policy);
        if (asked != nullptr && asked->isAllOnDevice)
            resident.numbers = setup.numbers; // by layer, all boundaries are kept
        MR_TRY(planWith(setup, resident));
        spec.deviceMemoryBytes =
            std::min<std::uint64_t>(setup.memory.bytes(Tier::Device), machine.availableBytes / 2);
    }
    if (spec.hostMemoryBytes == 0)
        spec.hostMemoryBytes = defaultHostBudget(machine.availableBytes);
    setup.budget = {static_cast<std::size_t>(spec.deviceMemoryBytes),
        static_cast<std::size_t>(spec.hostMemoryBytes),
        static_cast<std::size_t>(diskBudget(setup))};
    return {};
}

// Rates of a model that is trained whole, for a run that trains a part of it: seconds of passes go
// with their flops.
Feedback withoutFrozenWork(Feedback rates, const RunSetup& setup)
{
    if (!setup.shape.hasFrozen())
        return rates;
    const ModelShape whole = modelShape(setup.config, wholeModel(setup.table), setup.micro);
    double own = 0.0;
    double all = 0.0;
    const auto last = static_cast<std::size_t>(setup.shape.layers()) - 1;
    const auto first = static_cast<std::size_t>(std::max(1, setup.shape.firstTrained()));
    for (std::size_t g = first; g < last; ++g) {
        own += setup.shape.groups[g].backwardFlops;
        all += whole.groups[g].backwardFlops;
    }
    if (all > 0.0)
        for (int kind = 0; kind < kMostBlockKinds; ++kind)
            rates.blockOf(kind).backward *= own / all;
    if (whole.groups[last].backwardFlops > 0.0)
        rates.head.backward *=
            setup.shape.groups[last].backwardFlops / whole.groups[last].backwardFlops;
    return rates;
}

Status findRates(RunSetup& setup, const MachineInfo& machine, const RateCache& cache)
{
    MR_ASSIGN(auto subject, rateSubject(setup.spec, setup.config, machine));
    if (const Feedback* own = cache.find(subject.runKey))
        setup.rates = *own;
    else if (const Feedback* known = cache.find(subject.key))
        setup.rates = withoutFrozenWork(*known, setup);
    for (int kind = 0; kind < kMostBlockKinds; ++kind)
        if (double& cheap = setup.rates.blockOf(kind).cheap; cheap == 0.0)
            cheap = estimatedCheapSeconds(setup.shape, setup.rates);
    setup.scratch.addRates(1, setup.rates); // until it is known how much there will be
    return {};
}

} // namespace

std::int64_t stepCount(const RunSpec& spec, std::int64_t trainRows) noexcept
{
    if (spec.steps > 0)
        return spec.steps;
    const std::int64_t perStep = spec.microBatch * spec.accumulate;
    const double rows = spec.epochs * static_cast<double>(trainRows);
    return static_cast<std::int64_t>(std::ceil(rows / static_cast<double>(perStep)));
}

Result<RunSetup> setUpRun(const RunSpec& spec, std::int64_t trainRows)
{
    return setUpRun(spec, trainRows, inspectMachine());
}

Result<RunSetup> setUpRun(const RunSpec& spec, std::int64_t trainRows, const MachineInfo& machine)
{
    MR_TRY(checkSpec(spec));
    MR_TRY(checkPolicy(spec));
    RunSetup setup;
    setup.spec = spec;
    setup.spec.recompute = recomputeOf(
        spec.recompute, keepsInputsAlone(spec.keepInputs, spec.optimizer, spec.policyOptions));
    setup.asked = setup.spec;
    MR_TRY(takeAdapterSettings(setup.spec));
    makePathsAbsolute(setup.spec);
    MR_TRY(refuseUnrecordablePaths(setup.spec));
    auto config = readModelConfig(spec.modelDir.empty() ? spec.scratchConfig : spec.modelDir);
    if (!config.ok())
        return config.status();
    setup.config = std::move(config).value();
    setup.config.trainsInputs = trainsWholeModel(setup.spec);
    MR_ASSIGN(setup.table, trainedTable(setup.spec, setup.config));
    setup.host = {machine.memoryBytes, machine.availableBytes, machine.memoryIsLimited};
    MR_TRY(resolveNumbers(setup, machine, trainRows));
    MR_TRY(setUpTurns(setup));
    MR_TRY(readNumbers(setup));
    const RateCache cache = RateCache::load(RateCache::defaultPath());
    MR_TRY(findScratch(setup, cache));
    findBase(setup, cache);
    MR_TRY(resolveBudgets(setup, machine));
    MR_TRY(findRates(setup, machine, cache));
    MR_TRY(choosePolicy(setup));
    // Only streams that are threads can overlap copies, updates and compute.
    if (!policyInfo(setup.policy.id).isAllOnDevice || setup.spec.linkBytesPerSecond > 0.0)
        setup.spec.threadedDevice = true;
    return withAllowedWay(std::move(setup), trainRows, machine);
}

} // namespace mr
