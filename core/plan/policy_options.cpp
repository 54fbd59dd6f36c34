#include "core/plan/policy_options.h"

#include <millrace/run_spec.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace mr {

namespace {

std::string namesOf(unsigned takes)
{
    std::string names = "order, clip-mode";
    if ((takes & kTile) != 0)
        names += ", tile";
    if ((takes & kLate) != 0)
        names += ", late";
    if ((takes & kDeviceShare) != 0)
        names += ", device-share";
    if ((takes & kWarmup) != 0)
        names += ", warmup, accumulate-on";
    if ((takes & kColumns) != 0)
        names += ", urgent, interval, select, overlap, energy, host-clock, host-lr";
    names += ", state";
    if ((takes & kHomes) != 0)
        names += ", weights-on-device, state-on-device, boundary, activations-on-host, turns";
    if ((takes & kDisk) != 0)
        names += ", disk-share";
    if ((takes & kAllDisk) != 0)
        names += ", weights-on-disk, gradients-on-disk, boundaries-on-disk";
    if ((takes & kDisk) != 0)
        names += ", verify";
    return names;
}

Status refuseOption(const OptionTaker& taker, const std::string& option)
{
    std::string why = "is not known";
    constexpr std::array<std::string_view, 22> kKnown = {"late", "device-share", "tile", "warmup",
        "accumulate-on", "urgent", "interval", "select", "overlap", "energy", "host-clock",
        "host-lr", "weights-on-device", "state-on-device", "boundary", "turns", "disk-share",
        "weights-on-disk", "gradients-on-disk", "boundaries-on-disk", "activations-on-host",
        "verify"};
    if (std::find(kKnown.begin(), kKnown.end(), option) != kKnown.end())
        why = "is not of this policy";
    return Status::error(ErrorKind::InvalidArgument, "policy option '" + option + "' " + why +
                                                         "; '" + std::string(taker.policy) +
                                                         "' takes " + namesOf(taker.takes));
}

Result<double> parseShare(const std::string& option, const std::string& value)
{
    double share = -1.0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), share);
    if (error == std::errc() && end == value.data() + value.size() && share >= 0.0 && share <= 1.0)
        return share;
    return Status::error(ErrorKind::InvalidArgument,
        "policy option " + option + "=" + value + ": want a share from 0 to 1" +
            (option == "device-share" ? ", or auto" : ""));
}

// Bytes of one upload in BF16.
Status parseTile(const std::string& value, std::int64_t& elements)
{
    Result<std::uint64_t> bytes = parseBytes(value);
    MR_TRY(bytes.status());
    constexpr std::uint64_t kLeast = 2 * kCutElements;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 34;
    if (bytes.value() < kLeast || bytes.value() > kMost)
        return Status::error(ErrorKind::InvalidArgument,
            "policy option tile=" + value + ": want 2KiB to 16GiB, for instance 64MiB");
    elements = static_cast<std::int64_t>(bytes.value() / kLeast) * kCutElements;
    return {};
}

Result<ClipMode> parseClipMode(const OptionTaker& taker, const std::string& value)
{
    if (value == "exact")
        return ClipMode::Exact;
    const bool hasWindows = (taker.takes & kWarmup) != 0;
    if (value == "per-group" && !hasWindows)
        return ClipMode::PerGroup;
    if (value == "per-group")
        return Status::error(ErrorKind::InvalidArgument,
            "policy option clip-mode=per-group is not of '" + std::string(taker.policy) +
                "': the update of a window is clipped by the norm of all groups; use "
                "clip-mode=exact");
    return Status::error(ErrorKind::InvalidArgument,
        "policy option clip-mode=" + value + " is " +
            (value == "previous-norm" ? "not built in this version" : "not known") +
            "; use clip-mode=exact" + (hasWindows ? "" : " or per-group"));
}

Result<StateCodec> parseState(const std::string& value)
{
    if (value == "fp32")
        return StateCodec::Plain;
    if (value == "compact")
        return StateCodec::Compact;
    return Status::error(
        ErrorKind::InvalidArgument, "policy option state=" + value + ": want fp32 or compact");
}

Result<std::int64_t> parseSteps(
    const std::string& option, const std::string& value, std::int64_t least)
{
    constexpr std::int64_t kMost = 1'000'000;
    std::int64_t steps = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), steps);
    if (error == std::errc() && end == value.data() + value.size() && steps >= least &&
        steps <= kMost)
        return steps;
    return Status::error(ErrorKind::InvalidArgument,
        "policy option " + option + "=" + value + ": want a number of steps from " +
            std::to_string(least) + " to " + std::to_string(kMost) +
            (option == "interval" ? ", auto or magnitude" : ""));
}

Result<double> parseFactor(const std::string& option, const std::string& value)
{
    constexpr double kLeast = 0.01;
    constexpr double kMost = 100.0;
    double factor = 0.0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), factor);
    if (error == std::errc() && end == value.data() + value.size() && factor >= kLeast &&
        factor <= kMost)
        return factor;
    return Status::error(ErrorKind::InvalidArgument,
        "policy option " + option + "=" + value + ": want a factor from 0.01 to 100");
}

// One of two words; true: the second.
Result<bool> parseEither(const std::string& option, const std::string& value,
    std::string_view first, std::string_view second)
{
    if (value == first || value == second)
        return value == second;
    return Status::error(ErrorKind::InvalidArgument, "policy option " + option + "=" + value +
                                                         ": want " + std::string(first) + " or " +
                                                         std::string(second));
}

// Those that shape windows. False: it is none of them.
Result<bool> applyWindowOption(const OptionTaker& taker, const std::string& option,
    const std::string& value, PolicyNumbers& numbers)
{
    const bool columns = (taker.takes & kColumns) != 0;
    if (option == "urgent" && columns) {
        Result<double> share = parseShare(option, value);
        MR_TRY(share.status());
        numbers.urgentShare = share.value();
        return true;
    }
    if (option == "host-lr" && columns) {
        Result<double> factor = parseFactor(option, value);
        MR_TRY(factor.status());
        numbers.hostLearningRate = factor.value();
        return true;
    }
    if (option == "host-clock" && columns) {
        Result<bool> isUpdates = parseEither(option, value, "steps", "updates");
        MR_TRY(isUpdates.status());
        numbers.hostClock = isUpdates.value() ? HostClock::Updates : HostClock::Steps;
        return true;
    }
    if (option == "overlap" && columns) {
        Result<bool> isOn = parseEither(option, value, "off", "on");
        MR_TRY(isOn.status());
        numbers.window.overlap = isOn.value();
        return true;
    }
    if (option == "energy" && columns) {
        Result<bool> isAbsolute = parseEither(option, value, "l2", "l1");
        MR_TRY(isAbsolute.status());
        numbers.columnEnergy = isAbsolute.value() ? ColumnEnergy::Absolutes : ColumnEnergy::Squares;
        return true;
    }
    if (option == "accumulate-on" && (taker.takes & kWarmup) != 0) {
        if (value != "host" && value != "device" && value != "auto")
            return Status::error(ErrorKind::InvalidArgument,
                "policy option accumulate-on=" + value + ": want device, host or auto");
        // auto: whoever knows the rates has put a place here
        numbers.windowSums = value == "device" ? Tier::Device : Tier::PinnedHost;
        return true;
    }
    const bool isWarmup = option == "warmup" && (taker.takes & kWarmup) != 0;
    const bool isInterval = option == "interval" && columns;
    const bool isSelect = option == "select" && columns;
    if (isInterval && value == "auto")
        return true; // whoever knows the rates has put a number here
    if (isInterval && value == "magnitude") {
        numbers.intervalByMagnitude = true;
        return true;
    }
    if (!isWarmup && !isInterval && !isSelect)
        return false;
    Result<std::int64_t> steps = parseSteps(option, value, isInterval ? 1 : 0);
    MR_TRY(steps.status());
    if (isInterval)
        numbers.window.interval = static_cast<int>(steps.value());
    else
        (isWarmup ? numbers.window.warmup : numbers.window.select) = steps.value();
    return true;
}

// The number that is a plain share; null: it is none, or not of this policy.
double* shareOf(const OptionTaker& taker, const std::string& option, PolicyNumbers& numbers)
{
    struct Share {
        std::string_view option;
        Takes takes;
        double* number;
    };
    const std::array<Share, 7> shares = {{
        {"late", kLate, &numbers.lateShare},
        {"device-share", kDeviceShare, &numbers.deviceShare},
        {"disk-share", kDisk, &numbers.diskShare},
        {"weights-on-disk", kAllDisk, &numbers.homes.weightsOnDisk},
        {"gradients-on-disk", kAllDisk, &numbers.homes.gradientsOnDisk},
        {"boundaries-on-disk", kAllDisk, &numbers.homes.boundariesOnDisk},
        {"activations-on-host", kHomes, &numbers.homes.activationsOnHost},
    }};
    for (const Share& share : shares)
        if (share.option == option && (taker.takes & share.takes) != 0)
            return share.number;
    return nullptr;
}

// Where streamed weights and activations live. False: it is none of them.
Result<bool> applyHomeOption(const OptionTaker& taker, const std::string& option,
    const std::string& value, PolicyNumbers& numbers)
{
    if ((taker.takes & kHomes) == 0)
        return false;
    if (option == "boundary") {
        if (value != "host" && value != "device")
            return Status::error(ErrorKind::InvalidArgument,
                "policy option boundary=" + value + ": want host or device");
        numbers.homes.boundary = value == "host" ? Tier::PinnedHost : Tier::Device;
        return true;
    }
    if (option == "turns") {
        if (value != "1" && value != "2")
            return Status::error(
                ErrorKind::InvalidArgument, "policy option turns=" + value + ": want 1 or 2");
        numbers.turns = value == "1" ? 1 : 2;
        return true;
    }
    if (option != "weights-on-device" && option != "state-on-device")
        return false;
    Result<double> share = parseShare(option, value);
    MR_TRY(share.status());
    (option == "weights-on-device" ? numbers.homes.weightsOnDevice : numbers.homes.stateOnDevice) =
        share.value();
    return true;
}

} // namespace

Status applyOption(const OptionTaker& taker, const std::string& option, const std::string& value,
    PolicyNumbers& numbers)
{
    if (option == "order") {
        Result<WorkOrder> parsed = parseWorkOrder(value);
        MR_TRY(parsed.status());
        numbers.order = parsed.value();
        return {};
    }
    if (option == "tile" && (taker.takes & kTile) != 0)
        return parseTile(value, numbers.tileElements);
    if (option == "clip-mode") {
        Result<ClipMode> mode = parseClipMode(taker, value);
        MR_TRY(mode.status());
        numbers.clipMode = mode.value();
        return {};
    }
    if (option == "state") {
        Result<StateCodec> codec = parseState(value);
        MR_TRY(codec.status());
        numbers.stateCodec = codec.value();
        return {};
    }
    for (const auto apply : {applyWindowOption, applyHomeOption}) {
        Result<bool> applied = apply(taker, option, value, numbers);
        if (!applied.ok() || applied.value())
            return applied.status();
    }
    if (option == "verify" && (taker.takes & kDisk) != 0) // whoever opens the disk reads it
        return parseEither(option, value, "sampled", "all").status();
    double* share = shareOf(taker, option, numbers);
    if (!share)
        return refuseOption(taker, option);
    if (option == "device-share" && value == "auto") {
        *share = kBalanced;
        return {};
    }
    Result<double> parsed = parseShare(option, value);
    MR_TRY(parsed.status());
    *share = parsed.value();
    return {};
}

} // namespace mr
