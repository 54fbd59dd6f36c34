#include "gpu/ptx/kernel_cases.h"

#include "gpu/ops/attention_choice.h"
#include "gpu/ptx/ptx_device.h"
#include "gpu/ptx/ptx_runtime.h"

#include <array>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

constexpr unsigned kSeed = 20250117;

} // namespace

std::span<const Round> rounds()
{
    static const std::array<Round, 3> all = {{{{1, false, false, false, false}, true},
        {{7, true, false, false, false}, true}, {{3, true, true, true, true}, false}}};
    return all;
}

std::unique_ptr<Device> deviceOf(const std::string& target, int rows)
{
    runtime().memory.clear();
    const gpu::AttentionCard card{std::stoi(target.substr(3)) / 10, 1, 228 * 1024};
    return makePtxDevice(std::size_t{1} << 28, gpu::AttentionChoice(card, rows));
}

std::vector<int> rowsOf(const conformance::Case& line)
{
    return line.op.starts_with("attention") ? std::vector<int>{128, 64, 48, 32}
                                            : std::vector<int>{128};
}

std::string missed(Device& device, const conformance::Case& line, std::span<const Round> rounds)
{
    std::vector<std::byte> first;
    for (const Round& round : rounds) {
        runtime().freedom = round.freedom;
        runtime().failure = {};
        conformance::CaseRun run(device, kSeed);
        line.run(run);
        if (!runtime().failure.ok())
            return runtime().failure.message();
        if (!run.status().ok())
            return run.status().message();
        if (!(run.error() <= 1.0))
            return "error " + std::to_string(run.error()) + " tolerances, " + run.worst();
        if (first.empty())
            first = run.bytes();
        if (round.sameBits && run.bytes() != first)
            return "other bits under another order";
    }
    return {};
}

DryRun dryRunOf(const conformance::Case& line, const std::string& target, int rows)
{
    Runtime& all = runtime();
    all.launches.clear();
    all.dry.clear();
    const std::string before = all.target; // `target` may be it
    all.target = std::string(target);
    all.isDry = true;
    const auto device = deviceOf(all.target, rows);
    conformance::CaseRun run(*device, kSeed);
    line.run(run);
    all.isDry = false;
    all.target = before;
    return {std::exchange(all.launches, {}), std::exchange(all.dry, {})};
}

Launches launchesOf(const conformance::Case& line, const std::string& target, int rows)
{
    return dryRunOf(line, target, rows).kernels;
}

} // namespace mr::ptx
