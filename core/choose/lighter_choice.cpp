#include "core/choose/lighter_choice.h"

#include "core/choose/policy_choice.h"

#include <array>
#include <utility>

namespace mr {
namespace {

std::array<LighterWay, 4> allWays()
{
    std::array<LighterWay, 4> ways;
    auto& [compact, bits24, random16, blocks] = ways;
    compact.compactState = true;
    bits24.optimizer = random16.optimizer = Optimizer::Factored;
    random16.weights = WeightFormat::Random16;
    blocks.blocks = true;
    return ways;
}

const char* words(const LighterWay& way)
{
    if (way.compactState)
        return "its compact state";
    if (way.blocks)
        return "blocks in turn";
    return way.weights == WeightFormat::Random16 ? "optimizer factored on weights of 16 bits"
                                                 : "optimizer factored on weights of 24 bits";
}

double tokensPerSecond(const RunSetup& setup)
{
    if (!setup.forecast.known || setup.forecast.stepSeconds <= 0.0)
        return 0.0;
    return static_cast<double>(setup.micro.tokens() * setup.micro.microBatches) /
           setup.forecast.stepSeconds;
}

// As the spec asks, without another look at lighter ways.
RunSpec specOf(const RunSetup& setup, const LighterWay& way)
{
    RunSpec spec = withLighterWay(setup.asked, way);
    spec.allowOther = false;
    return spec;
}

} // namespace

bool wantsLighter(const RunSetup& setup) noexcept
{
    const bool isWritten = setup.diskTraffic.writtenBytes > 0;
    return (!setup.limit.empty() || isWritten) && !isLight(setup.spec.optimizer) &&
           !isMostlyRead(setup.spec);
}

std::vector<LighterWay> fittingWays(const RunSetup& setup)
{
    std::vector<LighterWay> fitting;
    for (LighterWay way : allWays()) {
        auto changed = setUpRun(specOf(setup, way), 0);
        if (!changed.ok() || !changed.value().limit.empty())
            continue;
        const RunSetup& lighter = changed.value();
        way.policy = lighter.spec.policy;
        way.hostBytes = lighter.memory.bytes(Tier::PinnedHost);
        way.tokensPerSecond = tokensPerSecond(lighter);
        fitting.push_back(way);
    }
    return fitting;
}

Result<RunSetup> withAllowedWay(RunSetup setup, std::int64_t trainRows, const MachineInfo& machine)
{
    if (!setup.spec.allowOther || !isAuto(setup.asked) || !wantsLighter(setup))
        return setup;
    for (const LighterWay& way : allWays()) {
        auto changed = setUpRun(specOf(setup, way), trainRows, machine);
        if (!changed.ok() || !changed.value().limit.empty())
            continue;
        RunSetup lighter = std::move(changed).value();
        lighter.spec.allowOther = lighter.asked.allowOther = true;
        const std::string why = setup.limit.empty()
                                    ? "AdamW as it is would write to an SSD in every step"
                                    : "AdamW as it is does not fit";
        lighter.reason =
            why + ", so " + words(way) + (lighter.reason.empty() ? "" : "; " + lighter.reason);
        return lighter;
    }
    return setup;
}

} // namespace mr
