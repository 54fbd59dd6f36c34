// `millrace bench NAME`: ours, the limit measured in the same run, and the ratio.

#include "core/prove/bench.h"

#include "app/cli/bench_disk.h"
#include "app/cli/bench_step.h"
#include "app/cli/commands.h"
#include "app/compose.h"
#include "core/prove/bench_step.h"

#include <millrace/library.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct BenchOptions {
    std::string name;
    std::string device = "cpu";
    std::int64_t threads = 0;
    bool json = false;
    StepOptions step;
    DiskBenchOptions disk;
};

Result<std::vector<BenchRow>> measure(const std::string& name, Device& device)
{
    if (name == "matmul")
        return benchMatmul(device);
    if (name == "copy")
        return benchCopy(device);
    if (name == "adamw")
        return benchAdamw(device);
    if (name == "attention")
        return benchAttention(device);
    if (name == "elements")
        return benchElements(device);
    if (name == "step")
        return benchStep(device);
    return Status::error(ErrorKind::InvalidArgument,
        "bench '" + name + "': choose copy, matmul, adamw, attention, elements, step or disk");
}

// Defaults without an option: all cores, half of the available memory.
Result<RunSpec> deviceSpec(const BenchOptions& options)
{
    MR_ASSIGN(auto choice, parseDevice(options.device));
    MR_ASSIGN(auto spec, stepDeviceSpec(options.step, choice));
    MR_ASSIGN(auto complete, completeForMachine(spec));
    RunSpec& resolved = complete;
    if (resolved.device == DeviceChoice::Cuda)
        return resolved;
    resolved.device = DeviceChoice::Cpu;
    const MachineInfo machine = inspectMachine();
    auto threads = computeThreads(options.threads, machine.physicalCores);
    MR_TRY(threads.status());
    resolved.threads = threads.value();
    if (resolved.deviceMemoryBytes == 0)
        resolved.deviceMemoryBytes = machine.availableBytes / 2;
    return resolved;
}

void printRow(const BenchRow& row, bool json)
{
    if (json)
        printJson({{"name", row.name}, {"ours", row.ours}, {"limit", row.limit}, {"unit", row.unit},
            {"ratio", row.ratio}});
    else
        printText("%-52s %10.1f of %10.1f %-8s %5.1f %%", row.name.c_str(), row.ours, row.limit,
            row.unit.c_str(), 100.0 * row.ratio);
}

Status benchRows(Device& device, const BenchOptions& options)
{
    MR_ASSIGN(auto rows, measure(options.name, device));
    for (const BenchRow& row : rows)
        printRow(row, options.json);
    return {};
}

int bench(const BenchOptions& options)
{
    if (options.name == "disk") {
        const Status status = printDiskBench(options.disk, options.json);
        return status.ok() ? 0 : fail(status, options.json);
    }
    auto spec = deviceSpec(options);
    if (!spec.ok())
        return fail(spec.status(), options.json);
    auto device = makeDevice(spec.value());
    if (!device.ok())
        return fail(device.status(), options.json);
    const bool ofModel = options.name == "step" && !options.step.model.empty();
    const Status status =
        ofModel ? benchModelStep(*device.value(), spec.value(), options.step, options.json)
                : benchRows(*device.value(), options);
    return status.ok() ? 0 : fail(status, options.json);
}

} // namespace

void addBench(CLI::App& app, Action& action)
{
    auto options = std::make_shared<BenchOptions>();
    CLI::App* command = app.add_subcommand("bench", "Speed against the machine's limit");
    command
        ->add_option(
            "name", options->name, "copy, matmul, adamw, attention, elements, step or disk")
        ->required();
    command->add_option("--device", options->device, "cpu, cuda or auto");
    command->add_option("--threads", options->threads, "Compute threads of the CPU device");
    command->add_flag("--json", options->json, "JSON on stdout");
    addStepOptions(*command, options->step);
    addDiskBenchOptions(*command, options->disk);
    command->callback([options, &action] { action = [options] { return bench(*options); }; });
}

} // namespace mr::app
