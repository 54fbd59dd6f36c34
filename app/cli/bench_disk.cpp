#include "app/cli/bench_disk.h"

#include "app/cli/commands.h"
#include "core/base/bytes.h"
#include "core/choose/scratch_rates.h"
#include "core/tier/disk_bench.h"
#include "core/tier/scratch_folder.h"

#include <millrace/run_spec.h>

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace mr::app {
namespace {

using Json = nlohmann::json;

double megabytes(double bytes)
{
    return 1e-6 * bytes;
}

Result<DiskEngine> engineOf(const std::string& word)
{
    if (word == "auto")
        return DiskEngine::Auto;
    if (word == "uring")
        return DiskEngine::Uring;
    if (word == "threads")
        return DiskEngine::Threads;
    return Status::error(
        ErrorKind::InvalidArgument, "--engine '" + word + "': choose auto, uring or threads");
}

Result<DiskBenchSpec> specOf(const DiskBenchOptions& options)
{
    DiskBenchSpec spec;
    auto bytes = parseBytes(options.bytes);
    MR_TRY(bytes.status());
    auto block = parseBytes(options.block);
    MR_TRY(block.status());
    auto engine = engineOf(options.engine);
    MR_TRY(engine.status());
    if (!(options.seconds > 0.0))
        return Status::error(ErrorKind::InvalidArgument, "--seconds must be above 0");
    if (block.value() > kDiskRequestBytes)
        return Status::error(ErrorKind::InvalidArgument, "--block may be 1MiB at most");
    spec.folder = options.folder;
    spec.bytes = bytes.value();
    spec.requestBytes = static_cast<std::uint32_t>(block.value());
    spec.engine = engine.value();
    spec.seconds = options.seconds;
    spec.depth = options.depth;
    spec.tune = options.tune;
    return spec;
}

void printRow(const DiskBenchRow& row, bool asJson)
{
    const double ratio = row.limit > 0.0 ? row.ours / row.limit : 0.0;
    if (asJson)
        printJson({{"name", "disk " + row.name}, {"ours", megabytes(row.ours)},
            {"limit", megabytes(row.limit)}, {"unit", "MB/s"}, {"ratio", ratio},
            {"cores", row.ourCores}, {"limit_cores", row.limitCores}});
    else
        printText("disk %-10s %10.1f of %10.1f MB/s %6.1f %%   %.2f cores, the bare loop %.2f",
            row.name.c_str(), megabytes(row.ours), megabytes(row.limit), 100.0 * ratio,
            row.ourCores, row.limitCores);
}

} // namespace

void addDiskBenchOptions(CLI::App& command, DiskBenchOptions& options)
{
    command.add_option("--disk-path", options.folder, "disk: folder to measure (default: here)");
    command.add_option("--bytes", options.bytes, "disk: size of the scratch file, as 1GiB");
    command.add_option("--seconds", options.seconds, "disk: seconds of measuring, all together");
    command.add_option("--block", options.block, "disk: bytes of a request, at most 1MiB");
    command.add_option("--depth", options.depth, "disk: requests in flight each way");
    command.add_option("--engine", options.engine, "disk: auto, uring or threads");
    command.add_flag("--tune", options.tune, "disk: find the best block and depth first");
}

Status printDiskBench(const DiskBenchOptions& options, bool asJson)
{
    MR_ASSIGN(auto spec, specOf(options));
    MR_TRY(requireFiles({options.folder}, "--disk-path"));
    MR_ASSIGN(auto folder, inspectScratchFolder(spec.folder));
    for (const std::string& warning : folder.warnings)
        say(warning);
    MR_ASSIGN(auto result, benchDisk(spec));
    const ScratchFolder& place = folder;
    say(fmt::format("{} on {}{}, by {}, {} requests of {} in flight each way", place.path.string(),
        place.fileSystem, place.device.empty() ? "" : " of " + place.device, result.about,
        result.depth, formatBytes(result.requestBytes)));
    for (const DiskBenchRow& row : result.rows)
        printRow(row, asJson);
    if (spec.engine == DiskEngine::Auto) // the engine that a run would use
        MR_TRY(keepDiskRates(folder, result.rates).status());
    return {};
}

} // namespace mr::app
