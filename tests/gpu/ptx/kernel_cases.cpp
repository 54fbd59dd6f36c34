#include "gpu/ptx/kernel_cases.h"

#include "gpu/ops/attention_choice.h"
#include "gpu/ptx/ptx_device.h"
#include "gpu/ptx/ptx_runtime.h"

#include <QtGlobal>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

// That of `selftest`, whose bits on a card are compared.
unsigned inputSeed()
{
    return conformance::kCaseSeed + otherSeed();
}

gpu::AttentionChoice choiceOf(const std::string& target, int rows)
{
    return gpu::AttentionChoice({std::stoi(target.substr(3)) / 10, 1, 228 * 1024}, rows);
}

} // namespace

unsigned otherSeed()
{
    static const int number = qEnvironmentVariableIntValue("MR_PTX_SEED");
    return static_cast<unsigned>(number);
}

std::span<const Round> rounds()
{
    static const std::array<Round, 3> all = {{{{1, false, false, false, false}, true},
        {{7, true, false, false, false}, true}, {{3, true, true, true, true}, false}}};
    return all;
}

std::unique_ptr<simt::KernelDevice> deviceOf(const std::string& target, int rows)
{
    runtime().memory.clear();
    return makePtxDevice(std::size_t{1} << 28, choiceOf(target, rows));
}

bool hasTensorCores(const std::string& target)
{
    return choiceOf(target, 128).hasTensorCores();
}

std::vector<int> rowsOf(const conformance::Case& line)
{
    return line.op.starts_with("attention") ? std::vector<int>{128, 64, 48, 32}
                                            : std::vector<int>{128};
}

std::string missed(Device& device, const conformance::Case& line, std::span<const Round> rounds,
    CaseDigest* digest)
{
    const bool isExact = digest && digest->isExact;
    std::vector<std::byte> first;
    for (const Round& round : rounds) {
        runtime().freedom = round.freedom;
        runtime().freedom.seed += otherSeed();
        runtime().failure = {};
        conformance::CaseRun run(device, inputSeed());
        line.run(run);
        if (!runtime().failure.ok())
            return runtime().failure.message();
        if (!run.status().ok())
            return run.status().message();
        if (!(run.error() <= 1.0))
            return "error " + std::to_string(run.error()) + " tolerances, " + run.worst();
        if (&round == &rounds.front()) {
            first = run.bytes();
            if (digest) {
                digest->bits = run.digest();
                digest->error = fmt::format("{:.3g}", run.error());
            }
        }
        if ((round.sameBits || isExact) && run.bytes() != first)
            return "other bits under another order";
    }
    return {};
}

bool areExact(const Launches& launches)
{
    return std::ranges::all_of(launches, [](const auto& launch) {
        auto program = programFor(launch.first, runtime().target);
        return program.ok() && openInstruction(*program.value()).empty();
    });
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
    conformance::CaseRun run(*device, inputSeed());
    line.run(run);
    all.isDry = false;
    all.target = before;
    return {std::exchange(all.launches, {}), std::exchange(all.dry, {})};
}

} // namespace mr::ptx
