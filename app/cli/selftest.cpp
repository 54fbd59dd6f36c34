// `millrace selftest`: every op against double precision, every exact policy against resident.

#include "app/cli/commands.h"
#include "core/device/conformance.h"
#include "core/device/cpu/cpu_device.h"
#include "core/engine/exact_check.h"
#include "core/plan/policies.h"

#include <millrace/library.h>
#include <millrace/run_spec.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct Options {
    std::string device = "cpu";
    std::string op;
    std::int64_t threads = 0;
    bool json = false;
};

struct Tally {
    int cases = 0;
    int passed = 0;
};

void report(const Options& options, Tally& tally, const std::string& name, bool pass,
    const std::string& detail)
{
    ++tally.cases;
    tally.passed += pass ? 1 : 0;
    if (options.json)
        printLine(nlohmann::json{{"case", name}, {"pass", pass}, {"detail", detail}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
        std::printf("%s  %-60s %s\n", pass ? "ok  " : "FAIL", name.c_str(), detail.c_str());
}

Result<std::unique_ptr<Device>> makeTestDevice(const Options& options, CpuDeviceOptions::Mode mode)
{
    CpuDeviceOptions cpu;
    cpu.memoryBytes = std::size_t{1} << 30;
    cpu.threads = options.threads > 0 ? static_cast<int>(options.threads)
                                      : std::max(1, inspectMachine().physicalCores);
    cpu.mode = mode;
    return makeCpuDevice(cpu);
}

Status checkOps(const Options& options, Tally& tally)
{
    auto device = makeTestDevice(options, CpuDeviceOptions::Mode::Inline);
    if (!device.ok())
        return device.status();
    const auto each = [&](const ConformanceResult& result) {
        std::string detail = result.message;
        if (detail.empty())
            detail = "error " + std::to_string(result.error) + " of the tolerance" +
                     (result.sameBits ? "" : ", other bits when run again");
        report(options, tally, result.name, result.pass, detail);
    };
    auto ran = runConformance(*device.value(), each, options.op);
    return ran.ok() ? Status() : ran.status();
}

// One model, data and seed; every policy, order, device mode and update thread count.
Status checkPolicies(const Options& options, Tally& tally)
{
    for (const DType compute : {DType::F32, DType::BF16}) {
        TinyRun run;
        run.compute = compute;
        auto inlineDevice = makeTestDevice(options, CpuDeviceOptions::Mode::Inline);
        auto threaded = makeTestDevice(options, CpuDeviceOptions::Mode::Threaded);
        if (!inlineDevice.ok() || !threaded.ok())
            return inlineDevice.ok() ? threaded.status() : inlineDevice.status();
        auto reference = runTiny(*inlineDevice.value(), run);
        if (!reference.ok())
            return reference.status();
        for (const PolicyInfo& policy : policyTable()) {
            if (!policy.built || !policy.exact)
                continue;
            for (Device* device : {inlineDevice.value().get(), threaded.value().get()}) {
                run.policy = policy.name;
                auto result = runTiny(*device, run);
                const std::string name = "policy " + std::string(policy.name) +
                                         (compute == DType::F32 ? " fp32" : " bf16") +
                                         (device->info().asynchronous ? " threaded" : " inline");
                if (!result.ok())
                    return result.status();
                const bool same = result.value().weightsHash == reference.value().weightsHash &&
                                  result.value().losses == reference.value().losses;
                report(options, tally, name, same, "weights " + result.value().weightsHash);
            }
        }
    }
    return {};
}

int selftest(const Options& options)
{
    auto choice = parseDevice(options.device);
    if (!choice.ok())
        return fail(choice.status(), options.json);
    if (choice.value() == DeviceChoice::Cuda)
        return fail(Status::error(ErrorKind::InvalidArgument,
                        "device cuda: this build has no CUDA device yet; use --device cpu"),
            options.json);
    Tally tally;
    if (const Status status = checkOps(options, tally); !status.ok())
        return fail(status, options.json);
    if (options.op.empty())
        if (const Status status = checkPolicies(options, tally); !status.ok())
            return fail(status, options.json);
    if (options.json)
        printLine(nlohmann::json{{"cases", tally.cases}, {"passed", tally.passed}}.dump());
    else
        std::printf("%d of %d cases passed\n", tally.passed, tally.cases);
    return tally.passed == tally.cases && tally.cases > 0 ? 0 : 5;
}

} // namespace

void addSelftest(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("selftest", "Check ops and policies on this machine");
    command->add_option("--device", options->device, "cpu or cuda");
    command->add_option("--op", options->op, "Only this op");
    command->add_option("--threads", options->threads, "Compute threads");
    command->add_flag("--json", options->json, "JSON on stdout");
    command->callback([options, &action] { action = [options] { return selftest(*options); }; });
}

} // namespace mr::app
