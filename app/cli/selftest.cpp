// `millrace selftest`: every op against double precision, every exact policy against resident.

#include "app/cli/commands.h"
#include "app/compose.h"
#include "app/cuda_plugin.h"
#include "core/base/bytes.h"
#include "core/device/cpu/cpu_device.h"
#include "core/plan/policies.h"
#include "core/prove/conformance.h"
#include "core/prove/exact_check.h"

#include <millrace/library.h>
#include <millrace/run_spec.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace mr::app {
namespace {

struct SelftestOptions {
    std::string device = "cpu";
    DeviceChoice choice = DeviceChoice::Cpu;
    bool bf16 = true; // false: the card has none, and BF16 cases are left out
    bool fp8 = true;  // likewise, of products
    std::string op;
    std::int64_t threads = 0;
    bool listOps = false;
    bool json = false;
};

struct Tally {
    int cases = 0;
    int passed = 0;
};

// `more`: members that only the JSON has.
void report(const SelftestOptions& options, Tally& tally, const std::string& name, bool pass,
    const std::string& detail, const nlohmann::json& more = nlohmann::json::object())
{
    ++tally.cases;
    tally.passed += pass ? 1 : 0;
    if (options.json) {
        nlohmann::json line = {{"case", name}, {"pass", pass}, {"detail", detail}};
        line.update(more);
        printJson(line);
    } else
        printText("%s  %-60s %s", pass ? "ok  " : "FAIL", name.c_str(), detail.c_str());
}

Result<std::unique_ptr<Device>> makeTestDevice(
    const SelftestOptions& options, CpuDeviceOptions::Mode mode)
{
    if (options.choice == DeviceChoice::Cuda)
        return makeWholeCudaDevice();
    CpuDeviceOptions cpu;
    cpu.memoryBytes = std::size_t{1} << 30;
    auto threads = computeThreads(options.threads, inspectMachine().physicalCores);
    MR_TRY(threads.status());
    cpu.threads = threads.value();
    cpu.mode = mode;
    return makeCpuDevice(cpu);
}

Status checkOps(const SelftestOptions& options, Tally& tally)
{
    MR_ASSIGN(auto device, makeTestDevice(options, CpuDeviceOptions::Mode::Inline));
    if (options.choice == DeviceChoice::Cuda && !options.json)
        printText("%s, %s, %s held by CUDA itself", device->info().name.c_str(),
            device->info().instructionSet.c_str(), formatBytes(cudaBaselineBytes(*device)).c_str());
    const auto each = [&](const ConformanceResult& result) {
        if (!options.bf16 && result.name.find(" bf16") != std::string::npos)
            return;
        std::string detail = result.message;
        if (detail.empty())
            detail = fmt::format("error {} of the tolerance{}", result.error,
                result.sameBits ? "" : ", other bits when run again");
        report(options, tally, result.name, result.pass, detail,
            {{"bits", result.bits}, {"error", result.error}});
    };
    // On processors the small shapes take every path of the code.
    const bool modelSizes = options.choice == DeviceChoice::Cuda;
    auto ran = runConformance(*device, each, options.op, modelSizes);
    return ran.ok() ? Status() : ran.status();
}

std::string modeOf(const SelftestOptions& options, const Device& device)
{
    if (options.choice == DeviceChoice::Cuda)
        return " cuda";
    return device.info().asynchronous ? " threaded" : " inline";
}

// The devices a policy must give the same bits on. On a card there is one mode.
Result<std::vector<std::unique_ptr<Device>>> policyDevices(const SelftestOptions& options)
{
    std::vector<std::unique_ptr<Device>> devices;
    using Mode = CpuDeviceOptions::Mode;
    for (const Mode mode : {Mode::Inline, Mode::Threaded}) {
        if (mode == Mode::Threaded && options.choice == DeviceChoice::Cuda)
            break;
        MR_ASSIGN(auto device, makeTestDevice(options, mode));
        devices.push_back(std::move(device));
    }
    return devices;
}

Status checkPolicy(const SelftestOptions& options, Tally& tally, Device& device, const TinyRun& run,
    const TinyResult& reference)
{
    MR_ASSIGN(auto result, runTiny(device, run));
    const bool same =
        result.weightsHash == reference.weightsHash && result.losses == reference.losses;
    std::string words = run.policy;
    for (const auto& [option, value] : run.options)
        words += " " + option + "=" + value;
    if (run.recompute != Recompute::None)
        words.append(", recompute ").append(mr::name(run.recompute));
    if (run.codedInputs)
        words += ", inputs int8";
    const char* precision = run.fp8 ? " fp8" : run.compute == DType::F32 ? " fp32" : " bf16";
    const std::string name = "policy " + words + precision + modeOf(options, device);
    report(options, tally, name, same, "weights " + result.weightsHash);
    return {};
}

using PolicyOptions = std::map<std::string, std::string>;

// Policies that must give the bits of `resident` with the same state: the exact ones, and zenflow
// where its windows are single steps, whichever side owns which columns.
std::vector<std::pair<std::string, PolicyOptions>> exactPolicies(const PolicyOptions& state)
{
    std::vector<std::pair<std::string, PolicyOptions>> policies;
    for (const PolicyInfo& policy : policyTable())
        if (policy.exact)
            policies.emplace_back(policy.name, state);
    if (!state.empty())
        return policies;
    PolicyOptions single = {{"interval", "1"}, {"overlap", "off"}, {"urgent", "0.25"},
        {"warmup", "1"}, {"select", "2"}};
    policies.emplace_back("zenflow", single);
    single.insert({{"disk-share", "0.5"}, {"tile", "8KiB"}});
    policies.emplace_back("zenflow", std::move(single));
    return policies;
}

// Every policy and device mode. Inputs in 8 bits have a reference of their own.
Status checkExact(const SelftestOptions& options, Tally& tally, TinyRun run)
{
    MR_ASSIGN(auto devices, policyDevices(options));
    MR_ASSIGN(auto reference, runTiny(*devices.front(), run));
    for (const auto& [policy, with] : exactPolicies(run.options)) {
        run.policy = policy;
        run.options = with;
        for (const std::unique_ptr<Device>& device : devices)
            MR_TRY(checkPolicy(options, tally, *device, run, reference));
    }
    return {};
}

// One model, data and seed; every kind of recomputation, policy and device mode.
Status checkPolicies(const SelftestOptions& options, Tally& tally, TinyRun run)
{
    MR_ASSIGN(auto devices, policyDevices(options));
    MR_ASSIGN(auto reference, runTiny(*devices.front(), run));
    for (const Recompute how : {Recompute::Cheap, Recompute::Block}) {
        run.recompute = how;
        for (const std::unique_ptr<Device>& device : devices)
            MR_TRY(checkPolicy(options, tally, *device, run, reference));
    }
    run.recompute = Recompute::None;
    MR_TRY(checkExact(options, tally, run));
    run.recompute = Recompute::Block;
    run.codedInputs = true;
    return checkExact(options, tally, run);
}

Status checkAllPolicies(const SelftestOptions& options, Tally& tally)
{
    TinyRun run;
    run.compute = DType::F32;
    run.disk.folders = {std::filesystem::temp_directory_path()};
    run.disk.runId = fmt::format("selftest-{}", ::getpid());
    MR_TRY(checkPolicies(options, tally, run));
    if (!options.bf16)
        return {};
    run.compute = DType::BF16;
    MR_TRY(checkPolicies(options, tally, run));
    if (options.fp8)
        MR_TRY(checkPolicies(options, tally, inFp8(run)));
    run.options = {{"state", "compact"}};
    return checkPolicies(options, tally, run);
}

int listOps()
{
    for (const std::string& op : conformanceOps())
        printText("%s", op.c_str());
    return 0;
}

Status checkOpName(const std::string& op)
{
    const std::vector<std::string> ops = conformanceOps();
    if (op.empty() || std::find(ops.begin(), ops.end(), op) != ops.end())
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("--op {}: no op has this name; `millrace selftest --list-ops` names them", op));
}

int selftest(SelftestOptions options)
{
    if (options.listOps)
        return listOps();
    if (const Status known = checkOpName(options.op); !known.ok())
        return fail(known, options.json);
    auto choice = parseDevice(options.device);
    if (!choice.ok())
        return fail(choice.status(), options.json);
    options.choice = choice.value();
    if (options.choice == DeviceChoice::Cuda) {
        auto facts = inspectCuda();
        if (!facts.ok())
            return fail(facts.status(), options.json);
        options.bf16 = facts.value().bf16;
        if (!options.bf16 && !options.json)
            printText("this card has no bf16 arithmetic: those cases are left out");
        options.fp8 = gpu::hasFp8(facts.value());
        if (!options.fp8 && !options.json)
            printText("this card has no FP8 products: those cases are left out");
    }
    Tally tally;
    if (const Status status = checkOps(options, tally); !status.ok())
        return fail(status, options.json);
    if (options.op.empty())
        if (const Status status = checkAllPolicies(options, tally); !status.ok())
            return fail(status, options.json);
    if (options.json)
        printJson({{"cases", tally.cases}, {"passed", tally.passed}});
    else
        printText("%d of %d cases passed", tally.passed, tally.cases);
    const bool isLeftOut = !options.fp8 && options.op == "codeProduct";
    return tally.passed == tally.cases && (tally.cases > 0 || isLeftOut) ? 0 : 5;
}

} // namespace

void addSelftest(CLI::App& app, Action& action)
{
    auto options = std::make_shared<SelftestOptions>();
    CLI::App* command = app.add_subcommand("selftest", "Check ops and policies on this machine");
    command->add_option("--device", options->device, "cpu or cuda");
    command->add_option("--op", options->op, "Only this op");
    command->add_flag("--list-ops", options->listOps, "Name the ops and check nothing");
    command->add_option("--threads", options->threads, "Compute threads");
    command->add_flag("--json", options->json, "JSON on stdout");
    command->callback([options, &action] { action = [options] { return selftest(*options); }; });
}

} // namespace mr::app
