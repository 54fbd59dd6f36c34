#include "core/engine/share_choice.h"

#include "core/engine/replan.h"
#include "core/plan/placement.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <map>

namespace mr {
namespace {

constexpr double kLeastGain = 0.03; // of a step

Result<double> shareOf(const RunSetup& setup)
{
    const auto found = setup.spec.policyOptions.find(kDeviceShare);
    const std::string text = found == setup.spec.policyOptions.end() ? "" : found->second;
    double share = -1.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
    if (error == std::errc() && end == text.data() + text.size() && share >= 0.0)
        return share;
    return Status::error(
        ErrorKind::Internal, "share choice: the run's device-share is '" + text + "'");
}

} // namespace

bool isShareOpen(const RunSetup& setup)
{
    if (setup.spec.policy != "deep-optimizer-states")
        return false;
    const auto asked = setup.asked.policyOptions.find(kDeviceShare);
    return asked == setup.asked.policyOptions.end() || asked->second == "auto";
}

bool paysToExchange(
    double secondsNow, double secondsNew, StepIndex stepsLeft, double costSeconds) noexcept
{
    const double gain = secondsNow - secondsNew;
    return gain > kLeastGain * secondsNow && gain * static_cast<double>(stepsLeft) > costSeconds;
}

Result<RunSetup> withShare(const RunSetup& before, double share, const Feedback& measured)
{
    std::map<std::string, std::string> options = before.spec.policyOptions;
    options[kDeviceShare] = std::to_string(share);
    return withOptions(before, options, measured);
}

Result<ShareDecision> decideShare(
    const RunSetup& setup, const Feedback& measured, StepIndex stepsLeft, double costSeconds)
{
    auto share = shareOf(setup);
    MR_TRY(share.status());
    ShareDecision decision;
    decision.shareNow = share.value();
    decision.shareNew = balancedDeviceShare(measured);
    auto now = withShare(setup, decision.shareNow, measured);
    MR_TRY(now.status());
    auto next = withShare(setup, decision.shareNew, measured);
    MR_TRY(next.status());
    if (!now.value().forecast.known || !next.value().forecast.known)
        return decision;
    decision.secondsNow = now.value().forecast.stepSeconds;
    decision.secondsNew = next.value().forecast.stepSeconds;
    decision.isWorthIt =
        next.value().limit.empty() &&
        paysToExchange(decision.secondsNow, decision.secondsNew, stepsLeft, costSeconds);
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
