#include "app/cli/bench_step.h"

#include "app/cli/commands.h"
#include "app/cuda_trace.h"
#include "core/base/bytes.h"
#include "core/plan/policies.h"
#include "core/prove/bench_step.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

using Json = nlohmann::json;

double milliseconds(std::int64_t us)
{
    return 1e-3 * static_cast<double>(us);
}

double percentOff(std::int64_t ours, std::int64_t theirs)
{
    return theirs == 0 ? (ours == 0 ? 0.0 : 100.0)
                       : 100.0 * static_cast<double>(ours - theirs) / static_cast<double>(theirs);
}

std::string nameOf(const std::string& path)
{
    const std::filesystem::path p = std::filesystem::path(path).lexically_normal();
    const std::filesystem::path file = p.has_filename() ? p : p.parent_path();
    return file.filename() == "config.json" ? file.parent_path().filename().string()
                                            : file.stem().string();
}

Result<StepBenchSpec> specOf(const StepOptions& options, const RunSpec& resolved)
{
    StepBenchSpec spec;
    auto config = readModelConfig(options.model);
    MR_TRY(config.status());
    spec.config = std::move(config).value();
    spec.name = nameOf(options.model);
    spec.seqLen = options.seqLen;
    spec.microBatch = options.microBatch;
    spec.accumulate = options.accumulate;
    spec.steps = static_cast<int>(options.steps);
    spec.updateThreads = static_cast<int>(options.updateThreads);
    spec.policy = options.policy;
    spec.options = resolved.policyOptions;
    spec.light = {resolved.optimizer,
        lightCodec(resolved.weights, resolved.precision == PrecisionChoice::F32)};
    spec.precision = resolved.precision;
    spec.recompute = resolved.recompute;
    spec.keepInputs = resolved.keepInputs;
    spec.deviceMemoryBytes = resolved.deviceMemoryBytes;
    spec.hostMemoryBytes = resolved.hostMemoryBytes;
    return spec;
}

Json stallsOf(const StepRow& row)
{
    Json stalls;
    for (std::size_t i = 0; i < kStallCauses; ++i)
        stalls[std::string(kStallCauseNames[i])] = milliseconds(row.stallUs[i]);
    return stalls;
}

Json stepJson(const StepRow& row)
{
    return {{"event", "step"}, {"step", row.step}, {"wall_ms", milliseconds(row.wallUs)},
        {"compute_ms", milliseconds(row.computeUs)}, {"stall_ms", stallsOf(row)},
        {"tokens", row.tokens}, {"loss", row.loss}, {"h2d_bytes", row.h2dBytes},
        {"d2h_bytes", row.d2hBytes}};
}

Json traceJson(const TraceComparison& t)
{
    return {{"event", "trace"}, {"steps", t.steps},
        {"compute_ms", milliseconds(t.computeNs / 1000)},
        {"cupti_busy_ms", milliseconds(t.seen.busyNs / 1000)}, {"kernels", t.seen.kernels},
        {"compute_off_percent", percentOff(t.computeNs, t.seen.busyNs)}, {"h2d_bytes", t.h2dBytes},
        {"cupti_h2d_bytes", t.seen.hostToDeviceBytes},
        {"h2d_off_percent", percentOff(t.h2dBytes, t.seen.hostToDeviceBytes)},
        {"d2h_bytes", t.d2hBytes}, {"cupti_d2h_bytes", t.seen.deviceToHostBytes},
        {"d2h_off_percent", percentOff(t.d2hBytes, t.seen.deviceToHostBytes)},
        {"dropped", t.seen.dropped}};
}

Json kernelJson(const KernelTime& time)
{
    const auto launches = static_cast<double>(time.launches);
    return {{"event", "kernel"}, {"name", time.name}, {"launches", time.launches},
        {"mean_us", 1e-3 * static_cast<double>(time.ns) / launches},
        {"least_us", 1e-3 * static_cast<double>(time.leastNs)},
        {"most_us", 1e-3 * static_cast<double>(time.mostNs)}};
}

Json summaryJson(const StepBenchReport& r, const Device& device)
{
    Json all = stepJson(r.typical());
    all["event"] = "summary";
    all["model"] = r.name;
    all["device"] = device.info().name;
    all["simulated_link"] = device.info().simulatedLink;
    all["policy"] = r.policy;
    all["precision"] = r.precision;
    all["recompute"] = name(r.recompute);
    all["parameters"] = r.parameters;
    all["tokens_per_second"] = r.tokensPerSecond();
    all["flops_per_step"] = r.flopsPerStep;
    all["flops_per_second"] = r.flopsPerSecond();
    all["peak_flops_per_second"] = r.peakFlops;
    all["share_of_peak"] = r.flopsPerSecond() / r.peakFlops;
    all["prepare_seconds"] = r.prepareSeconds;
    all["planned_device_bytes"] = r.plannedDeviceBytes;
    all["peak_device_bytes"] = r.peakDeviceBytes;
    all["planned_host_bytes"] = r.plannedHostBytes;
    all["peak_host_bytes"] = r.peakHostBytes;
    return all;
}

void printSteps(const StepBenchReport& r)
{
    std::string head = "  step    wall ms    compute";
    for (const std::string_view cause : kStallCauseNames)
        head += std::string(12 - std::min<std::size_t>(cause.size(), 11), ' ') + std::string(cause);
    printLine(head + "   tokens/s");
    for (const StepRow& row : r.steps) {
        std::string line = formatted("%6lld", static_cast<long long>(row.step)) +
                           formatted(" %10.2f", milliseconds(row.wallUs)) +
                           formatted(" %10.2f", milliseconds(row.computeUs));
        for (const std::int64_t stall : row.stallUs)
            line += formatted(" %11.2f", milliseconds(stall));
        const auto wallUs = static_cast<double>(std::max<std::int64_t>(row.wallUs, 1));
        printLine(line + formatted(" %10.0f", 1e6 * static_cast<double>(row.tokens) / wallUs));
    }
}

void printSummary(const StepBenchReport& r, const Device& device)
{
    constexpr double kTera = 1e12;
    const StepRow typical = r.typical();
    const auto other = typical.stallUs[static_cast<std::size_t>(StallCause::Other)];
    printText("typical step: %.2f ms, %.0f tokens/s, %.3f of %.3f TFLOP/s, %.1f %% of the peak",
        milliseconds(typical.wallUs), r.tokensPerSecond(), r.flopsPerSecond() / kTera,
        r.peakFlops / kTera, 100.0 * r.flopsPerSecond() / r.peakFlops);
    printText("  idle with nothing to wait for (launches, planning): %.2f ms", milliseconds(other));
    printText("  link%s: %s to the device, %s to the host a step",
        device.info().simulatedLink ? " (simulated)" : "",
        formatBytes(static_cast<std::uint64_t>(typical.h2dBytes)).c_str(),
        formatBytes(static_cast<std::uint64_t>(typical.d2hBytes)).c_str());
    printText("  device memory: %s planned, %s held; host: %s planned, %s held",
        formatBytes(r.plannedDeviceBytes).c_str(), formatBytes(r.peakDeviceBytes).c_str(),
        formatBytes(r.plannedHostBytes).c_str(), formatBytes(r.peakHostBytes).c_str());
}

void printTrace(const TraceComparison& t)
{
    printText("CUPTI over %d more steps, %lld kernels, %lld records lost:", t.steps,
        static_cast<long long>(t.seen.kernels), static_cast<long long>(t.seen.dropped));
    printText("  busy: ours %.3f ms, CUPTI %.3f ms, %+.2f %%", milliseconds(t.computeNs / 1000),
        milliseconds(t.seen.busyNs / 1000), percentOff(t.computeNs, t.seen.busyNs));
    printText("  to the device: ours %lld bytes, CUPTI %lld, %+.3f %%",
        static_cast<long long>(t.h2dBytes), static_cast<long long>(t.seen.hostToDeviceBytes),
        percentOff(t.h2dBytes, t.seen.hostToDeviceBytes));
    printText("  to the host: ours %lld bytes, CUPTI %lld, %+.3f %%",
        static_cast<long long>(t.d2hBytes), static_cast<long long>(t.seen.deviceToHostBytes),
        percentOff(t.d2hBytes, t.seen.deviceToHostBytes));
}

void print(const StepBenchReport& r, const Device& device, bool asJson)
{
    if (asJson) {
        for (const StepRow& row : r.steps)
            printJson(stepJson(row));
        printJson(summaryJson(r, device));
        if (r.trace) {
            printJson(traceJson(*r.trace));
            for (const KernelTime& time : r.trace->seen.kernelTimes)
                printJson(kernelJson(time));
        }
        return;
    }
    printText("%s on %s: %lld parameters, %s, %s, recompute %s, %lld tokens a step; ready in "
              "%.1f s",
        r.name.c_str(), device.info().name.c_str(), static_cast<long long>(r.parameters),
        r.policy.c_str(), r.precision.c_str(), std::string(name(r.recompute)).c_str(),
        static_cast<long long>(r.tokensPerStep), r.prepareSeconds);
    printSteps(r);
    printSummary(r, device);
    if (r.trace)
        printTrace(*r.trace);
}

// Null, with one sentence on stderr, where there is nothing to trace with.
std::unique_ptr<ActivityTrace> openTrace(const Device& device)
{
    if (device.info().threads > 0) {
        say("--cupti: the CPU device has no profiling library; nothing is traced");
        return nullptr;
    }
    auto trace = makeCudaTrace();
    if (trace.ok())
        return std::move(trace).value();
    say(trace.status().message());
    return nullptr;
}

} // namespace

void addStepOptions(CLI::App& command, StepOptions& options)
{
    command.add_option("--model", options.model,
        "step: config.json, or a folder with one; random weights (default: two built-in models)");
    command.add_option("--seq-len", options.seqLen, "step: tokens of a sequence");
    command.add_option("--micro-batch", options.microBatch, "step: sequences computed at once");
    command.add_option("--accumulate", options.accumulate, "step: micro-batches of a step");
    command.add_option("--steps", options.steps, "step: steps measured, after two that are not");
    command.add_option("--policy", options.policy, "step: auto, or a policy as of train");
    command.add_option("--policy-option", options.policyOptions, "step: key=value; repeatable");
    command.add_option("--optimizer", options.optimizer, "step: as of train");
    command.add_option("--weights", options.weights, "step: as of train");
    command.add_option("--precision", options.precision, "step: bf16, fp32 or fp8");
    command.add_option("--recompute", options.recompute, "step: none, cheap or block");
    command.add_option("--keep-inputs", options.keepInputs, "step: as of train");
    command.add_option("--device-memory", options.deviceMemory, "step: budget, as 6GiB");
    command.add_option("--host-memory", options.hostMemory, "step: budget, as 24GiB");
    command.add_option("--update-threads", options.updateThreads, "step: threads of host updates");
    command.add_option("--link", options.link, "step: CPU device only, slows copies, as 12GB/s");
    command.add_flag("--cupti", options.cupti, "step: three more steps beside CUPTI's counts");
}

Result<RunSpec> stepDeviceSpec(const StepOptions& options, DeviceChoice choice)
{
    RunSpec spec;
    spec.device = choice;
    const auto take = [](auto parsed, auto& to) {
        Status status = parsed.status();
        if (status.ok())
            to = std::move(parsed).value();
        return status;
    };
    MR_TRY(take(parsePrecision(options.precision), spec.precision));
    MR_TRY(take(parseRecompute(options.recompute), spec.recompute));
    MR_TRY(take(parseKeepInputs(options.keepInputs), spec.keepInputs));
    MR_TRY(take(parseOptimizer(options.optimizer), spec.optimizer));
    MR_TRY(take(parseWeightFormat(options.weights), spec.weights));
    if (!options.deviceMemory.empty())
        MR_TRY(take(parseBytes(options.deviceMemory), spec.deviceMemoryBytes));
    if (!options.hostMemory.empty())
        MR_TRY(take(parseBytes(options.hostMemory), spec.hostMemoryBytes));
    if (!options.link.empty())
        MR_TRY(take(parseRate(options.link), spec.linkBytesPerSecond));
    for (const std::string& option : options.policyOptions) {
        const std::size_t equals = option.find('=');
        if (equals == std::string::npos || equals == 0)
            return Status::error(ErrorKind::InvalidArgument,
                "--policy-option '" + option + "': write it as key=value");
        spec.policyOptions[option.substr(0, equals)] = option.substr(equals + 1);
    }
    const PolicyInfo* policy = findPolicy(options.policy); // null: auto
    spec.threadedDevice = policy != nullptr && !policy->isAllOnDevice;
    return spec;
}

Status benchModelStep(
    Device& device, const RunSpec& resolved, const StepOptions& options, bool json)
{
    MR_ASSIGN(auto spec, specOf(options, resolved));
    const std::unique_ptr<ActivityTrace> trace = options.cupti ? openTrace(device) : nullptr;
    MR_ASSIGN(auto report, runStepBench(device, spec, trace.get()));
    print(report, device, json);
    return {};
}

} // namespace mr::app
