// The device half of compose.h: completes specs for a card, and makes devices.

#include "app/compose.h"
#include "app/cuda_plugin.h"
#include "app/machine_rates.h"
#include "core/base/host_memory.h"
#include "core/device/cpu/cpu_device.h"
#include "core/plan/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace mr::app {
namespace {

// Card memory that is taken besides, after CudaFacts::freeBytes was read:
//   50 to 200 MiB  code of cuBLASLt, which the library loads when a product first uses it
//   some 30 MiB    local memory of kernels that spill: about 100 bytes a thread for all threads the
//                  card can hold, 132 x 2,048 of an H100
//   2 MiB          rounding of the run's one block, and up to 255 bytes an array in it
//   the rest       what other programs take during the run: a browser, the desktop
// The 64 MiB of workspace are off the free bytes already. All of it is expected: no card was asked.
constexpr std::uint64_t kKeptFreeBytes = std::uint64_t{768} << 20;

std::uint64_t usableBytes(const gpu::CudaFacts& facts)
{
    return facts.freeBytes > kKeptFreeBytes ? facts.freeBytes - kKeptFreeBytes : 0;
}

// Believed to be enough where the kernel does not say.
std::uint64_t usableHostBytes()
{
    constexpr std::uint64_t kKeptBytes = std::uint64_t{1}
                                         << 30; // what other programs take meanwhile
    constexpr std::uint64_t kKeptShare = 8;     // at most, of a small machine
    const auto memory = readHostMemory("/");
    if (!memory)
        return std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t available = memory->availableBytes;
    return available - std::min(kKeptBytes, available / kKeptShare);
}

Status requireBf16(const gpu::CudaFacts& facts)
{
    if (facts.bf16)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("precision bf16: {} (compute capability {}.{}) has no bf16 arithmetic, which "
                    "comes with 8.0; use fp32, or device cpu",
            facts.name, facts.computeMajor, facts.computeMinor));
}

Status requireFp8(const gpu::CudaFacts& facts)
{
    if (gpu::hasFp8(facts))
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("precision fp8: {} (compute capability {}.{}) has no FP8 products, which come "
                    "with 8.9; use bf16, or device cpu, which emulates them",
            facts.name, facts.computeMajor, facts.computeMinor));
}

// With Auto the reason why there is no card stays unsaid: without a driver CUDA is not asked.
Result<gpu::CudaFacts> inspectIfAsked(DeviceChoice choice)
{
    if (choice == DeviceChoice::Auto && !mayHaveCudaCard())
        return Status::error(ErrorKind::InvalidArgument, "device cuda: there is no NVIDIA driver");
    return inspectCuda();
}

Result<RunSpec> completeForCard(RunSpec spec, const gpu::CudaFacts& facts)
{
    spec.device = DeviceChoice::Cuda;
    if (spec.precision == PrecisionChoice::BF16)
        MR_TRY(requireBf16(facts));
    if (spec.precision == PrecisionChoice::Fp8)
        MR_TRY(requireFp8(facts));
    if (spec.precision == PrecisionChoice::Auto)
        spec.precision = facts.bf16 ? PrecisionChoice::BF16 : PrecisionChoice::F32;
    if (spec.deviceMemoryBytes == 0)
        spec.deviceMemoryBytes = usableBytes(facts);
    if (spec.deviceMemoryBytes == 0)
        return Status::error(
            ErrorKind::OutOfMemory, "device cuda: other programs hold nearly all memory of " +
                                        facts.name + "; end them, or choose device cpu");
    return spec;
}

// A plan for a card that is elsewhere: any but the oldest computes in bf16.
Result<RunSpec> completeWithoutCard(RunSpec spec, const Status& why)
{
    if (spec.deviceMemoryBytes == 0)
        return Status::error(why.kind(),
            why.message() + "; only a plan can do without the card: give it --device-memory");
    if (spec.precision == PrecisionChoice::Auto)
        spec.precision = PrecisionChoice::BF16;
    return spec;
}

Result<std::unique_ptr<Device>> makeCpu(std::size_t bytes, std::int64_t threads)
{
    const MachineInfo machine = inspectMachine();
    MR_ASSIGN(
        auto count, computeThreads(threads, std::min(machine.physicalCores, machine.threads)));
    CpuDeviceOptions options;
    options.memoryBytes = bytes;
    options.threads = count;
    return makeCpuDevice(options);
}

void noteMissingRates(const Status& measured, PlanReport& report)
{
    if (!measured.ok())
        report.advice.push_back("There is no forecast of times: " + measured.message());
}

// A plan in bf16 that stands beside one in another precision, on a card that has no bf16.
void refuseMissingPrecision(RunSpec spec, std::vector<PlanReport>& reports)
{
    spec.precision = PrecisionChoice::BF16;
    const Status status = completeForMachine(spec).status();
    if (status.ok())
        return;
    for (PlanReport& report : reports) {
        if (report.precision != name(PrecisionChoice::BF16))
            continue;
        report.fits = false;
        report.limit = status.message();
    }
}

} // namespace

Result<RunSpec> completeForMachine(const RunSpec& asked)
{
    RunSpec spec = asked;
    MR_ASSIGN(spec.modelDir, folderToTrainFrom(asked.modelDir));
    if (spec.device == DeviceChoice::Cpu)
        return spec;
    // A link rate or threaded streams are asked of the CPU device only.
    const bool wantsCpu = spec.linkBytesPerSecond > 0.0 || spec.threadedDevice;
    if (spec.device == DeviceChoice::Auto && wantsCpu)
        return spec;
    const auto facts = inspectIfAsked(spec.device);
    if (facts.ok())
        return completeForCard(spec, Result(facts).value());
    if (spec.device == DeviceChoice::Cuda)
        return completeWithoutCard(spec, facts.status());
    spec.device = DeviceChoice::Cpu;
    return spec;
}

Result<RunSpec> resolveForMachine(const RunSpec& spec, std::int64_t trainRows)
{
    MR_ASSIGN(auto complete, completeForMachine(spec));
    const PolicyInfo* policy = findPolicy(spec.policy); // null: auto
    const bool asksRates = policy == nullptr || policy->isBalanced;
    if (asksRates)
        (void)measureIfMissing(complete).ok(); // the run goes without a forecast then
    return resolveSpec(complete, trainRows);
}

Result<PlanReport> planForMachine(const RunSpec& spec)
{
    MR_ASSIGN(auto complete, completeForMachine(spec));
    const Status measured = measureIfMissing(complete);
    auto report = planRun(complete);
    if (report.ok())
        noteMissingRates(measured, report.value());
    return report;
}

Result<std::vector<PlanReport>> planAllForMachine(const RunSpec& spec)
{
    MR_ASSIGN(auto complete, completeForMachine(spec));
    const Status measured = measureIfMissing(complete);
    auto reports = planAllPolicies(complete);
    if (reports.ok())
        for (PlanReport& report : reports.value())
            noteMissingRates(measured, report);
    return reports;
}

Result<std::vector<PlanReport>> planMethodsForMachine(const RunSpec& spec)
{
    MR_ASSIGN(auto complete, completeForMachine(spec));
    // Seconds of the other methods follow from those of the whole model.
    const Status measured = measureIfMissing(specsOfMethods(complete).front());
    MR_ASSIGN(auto reports, planAllMethods(complete));
    for (PlanReport& report : reports)
        noteMissingRates(measured, report);
    refuseMissingPrecision(spec, reports);
    return reports;
}

Status measureForMachine(const RunSpec& spec)
{
    MR_ASSIGN(auto complete, completeForMachine(spec));
    return measureAgain(complete);
}

MachineInfo inspectWithDevices()
{
    MachineInfo machine = inspectMachine();
    if (machine.gpus.empty())
        return machine; // no driver, so nothing to ask the plugin about
    auto facts = inspectCuda();
    bool used = false;
    for (GpuInfo& gpu : machine.gpus) {
        if (!facts.ok())
            gpu.note = facts.status().message();
        else if (used || gpu.name != facts.value().name)
            gpu.note = "not used: a run uses one GPU, the first that CUDA lists; "
                       "CUDA_VISIBLE_DEVICES chooses another";
        else
            used = true;
    }
    return machine;
}

Result<int> computeThreads(std::int64_t asked, int otherwise)
{
    constexpr int kMost = CpuDeviceOptions::kMostThreads;
    if (asked < 0 || asked > kMost)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("threads is {}; it must be from 0 to {}", asked, kMost));
    return asked > 0 ? static_cast<int>(asked) : std::max(1, otherwise);
}

Result<std::unique_ptr<Device>> makeDevice(const RunSpec& resolved)
{
    if (resolved.device == DeviceChoice::Cuda)
        return makeCudaDevice(resolved.deviceMemoryBytes);
    CpuDeviceOptions options;
    options.memoryBytes = static_cast<std::size_t>(resolved.deviceMemoryBytes);
    auto threads = computeThreads(resolved.threads, 1);
    MR_TRY(threads.status());
    options.threads = threads.value();
    options.mode =
        resolved.threadedDevice ? CpuDeviceOptions::Mode::Threaded : CpuDeviceOptions::Mode::Inline;
    options.linkBytesPerSecond = resolved.linkBytesPerSecond;
    return makeCpuDevice(options);
}

Result<DType> inferenceType(const std::string& precision)
{
    MR_ASSIGN(const auto choice, parsePrecision(precision));
    if (choice == PrecisionChoice::Fp8)
        return Status::error(ErrorKind::InvalidArgument,
            "precision fp8 is for training only; the weights it trains are bf16: use bf16 or fp32");
    return choice == PrecisionChoice::BF16 ? DType::BF16 : DType::F32;
}

Result<std::unique_ptr<Device>> makeInferenceDevice(const InferenceDevice& asked)
{
    if (asked.choice == DeviceChoice::Cpu)
        return makeCpu(asked.bytes, asked.threads);
    auto facts = inspectIfAsked(asked.choice);
    const Status bf16 =
        !facts.ok() || asked.compute != DType::BF16 ? facts.status() : requireBf16(facts.value());
    if (asked.choice == DeviceChoice::Cuda) {
        MR_TRY(bf16);
        return makeCudaDevice(asked.bytes);
    }
    if (bf16.ok() && asked.bytes <= usableBytes(facts.value()))
        return makeCudaDevice(asked.bytes);
    return makeCpu(asked.bytes, asked.threads);
}

Result<std::uint64_t> inferenceMemory(DeviceChoice choice, DType compute)
{
    if (choice == DeviceChoice::Cpu)
        return usableHostBytes();
    auto facts = inspectIfAsked(choice);
    if (!facts.ok() && choice == DeviceChoice::Cuda)
        return facts.status();
    const bool computes = facts.ok() && (compute != DType::BF16 || facts.value().bf16);
    const std::uint64_t onCard = computes ? usableBytes(facts.value()) : 0;
    return choice == DeviceChoice::Cuda ? onCard : std::max(onCard, usableHostBytes());
}

Result<std::unique_ptr<Device>> makeWholeCudaDevice()
{
    MR_ASSIGN(auto facts, inspectCuda());
    return makeCudaDevice(usableBytes(facts));
}

} // namespace mr::app
