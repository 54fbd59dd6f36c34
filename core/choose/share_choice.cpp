#include "core/choose/share_choice.h"

#include "core/choose/replan.h"
#include "core/plan/placement.h"

#include <array>
#include <cstdio>
#include <optional>

namespace mr {
namespace {

constexpr double kLeastGain = 0.03; // share of a step

} // namespace

bool isShareOpen(const RunSetup& setup)
{
    return policyInfo(setup.policy.id).isBalanced &&
           setup.askedNumbers.deviceShare.value_or(kBalanced) == kBalanced;
}

bool paysToExchange(
    double secondsNow, double secondsNew, StepIndex stepsLeft, double costSeconds) noexcept
{
    const double gain = secondsNow - secondsNew;
    return gain > kLeastGain * secondsNow && gain * static_cast<double>(stepsLeft) > costSeconds;
}

Result<RunSetup> withShare(const RunSetup& before, double share, const Feedback& measured)
{
    PolicyNumbers numbers = before.numbers;
    numbers.deviceShare = share;
    return withNumbers(before, numbers, measured);
}

Result<ShareDecision> decideShare(
    const RunSetup& setup, const Feedback& measured, StepIndex stepsLeft, double costSeconds)
{
    const std::optional<double> share = setup.numbers.deviceShare;
    if (!share || *share == kBalanced)
        return Status::error(ErrorKind::Internal, "share choice: the run has no device share");
    ShareDecision decision;
    decision.shareNow = *share;
    decision.shareNew = balancedDeviceShare(measured);
    MR_ASSIGN(auto now, withShare(setup, decision.shareNow, measured));
    MR_ASSIGN(auto next, withShare(setup, decision.shareNew, measured));
    if (!now.forecast.known || !next.forecast.known)
        return decision;
    decision.secondsNow = now.forecast.stepSeconds;
    decision.secondsNew = next.forecast.stepSeconds;
    decision.isWorthIt = next.limit.empty() && paysToExchange(decision.secondsNow,
                                                   decision.secondsNew, stepsLeft, costSeconds);
    return decision;
}

std::string shareWords(const ShareDecision& decision, const Feedback& measured)
{
    std::array<char, 400> text{};
    (void)std::snprintf(text.data(), text.size(),
        "The device updates %.3f of the state from here on, before %.3f: steps measured %.2f GB/s "
        "to the device, %.2f GB/s to the host, AdamW of %.3g elements a second on the host and "
        "%.3g on the device; forecast %.4g s a step, before %.4g s (%.4g s less). The result stays "
        "the same, bit for bit.",
        decision.shareNew, decision.shareNow, 1e-9 * measured.hostToDeviceBytesPerSecond,
        1e-9 * measured.deviceToHostBytesPerSecond, measured.hostAdamwElementsPerSecond,
        measured.deviceAdamwElementsPerSecond, decision.secondsNew, decision.secondsNow,
        decision.secondsNow - decision.secondsNew);
    return text.data();
}

} // namespace mr
