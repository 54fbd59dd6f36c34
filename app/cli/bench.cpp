// `millrace bench NAME`: ours, the limit measured in the same run, and the ratio.

#include "core/device/bench.h"

#include "app/cli/commands.h"
#include "core/device/cpu/cpu_device.h"
#include "core/engine/bench_step.h"

#include <millrace/library.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

struct Options {
    std::string name;
    std::int64_t threads = 0;
    bool json = false;
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
    if (name == "step")
        return benchStep(device);
    return Status::error(ErrorKind::InvalidArgument,
        "bench '" + name + "': choose copy, matmul, adamw, attention or step" +
            (name == "disk" ? " (disk comes with the SSD tier)" : ""));
}

int bench(const Options& options)
{
    CpuDeviceOptions cpu;
    cpu.memoryBytes = static_cast<std::size_t>(inspectMachine().availableBytes / 2);
    cpu.threads = options.threads > 0 ? static_cast<int>(options.threads)
                                      : std::max(1, inspectMachine().physicalCores);
    auto device = makeCpuDevice(cpu);
    if (!device.ok())
        return fail(device.status(), options.json);
    auto rows = measure(options.name, *device.value());
    if (!rows.ok())
        return fail(rows.status(), options.json);
    for (const BenchRow& row : rows.value()) {
        if (options.json)
            printLine(nlohmann::json{{"name", row.name}, {"ours", row.ours}, {"limit", row.limit},
                {"unit", row.unit}, {"ratio", row.ratio}}
                          .dump());
        else
            std::printf("%-44s %10.1f of %10.1f %-8s %5.1f %%\n", row.name.c_str(), row.ours,
                row.limit, row.unit.c_str(), 100.0 * row.ratio);
    }
    return 0;
}

} // namespace

void addBench(CLI::App& app, Action& action)
{
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("bench", "Speed against the machine's limit");
    command->add_option("name", options->name, "copy, matmul, adamw, attention or step")
        ->required();
    command->add_option("--threads", options->threads, "Compute threads");
    command->add_flag("--json", options->json, "JSON on stdout");
    command->callback([options, &action] { action = [options] { return bench(*options); }; });
}

} // namespace mr::app
