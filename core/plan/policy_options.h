// The options of policies: one table, from which parsing, messages, `--help` and records follow.
//
// Text is read and written at the border only (command line, JSON, window); everything behind it
// handles PolicyNumbers. Numbers are written so that reading them gives the same bits.
//
// Threads  Pure.
// Errors   InvalidArgument names the option and the values or options to use.

#pragma once

#include "core/plan/placement.h"
#include "core/plan/policy.h"
#include "core/plan/traversal.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mr {

// Which options a policy takes, beside those that all take.
enum Takes : unsigned {
    kAll = 0,
    kTile = 2,
    kLate = 4,
    kDeviceShare = 8,
    kWarmup = 16,
    kColumns = 32,
    kHomes = 64,
    kDisk = 128,
    kAllDisk = 256
};

// Where the gradients of a window are summed. Auto: the code that knows the rates decides.
enum class WindowSums : std::uint8_t { Device, Host, Auto };

// How many reads of optimizer state are compared with their checksums.
enum class VerifyReads : std::uint8_t { Sampled, All };

struct WindowInterval {
    enum class From : std::uint8_t { User, Rates, Magnitude };
    From from = From::User;
    std::int64_t steps = 0; // where they are known

    bool operator==(const WindowInterval&) const = default;
};

// The options that were said or chosen. An empty one is the policy's own.
struct PolicyNumbers {
    std::optional<WorkOrder> order;
    std::optional<ClipMode> clipMode;
    std::optional<std::int64_t> tileElements;
    std::optional<double> late;
    std::optional<double> deviceShare; // or kBalanced
    std::optional<std::int64_t> warmup;
    std::optional<WindowSums> accumulateOn;
    std::optional<double> urgent;
    std::optional<WindowInterval> interval;
    std::optional<std::int64_t> select;
    std::optional<bool> overlap;
    std::optional<ColumnEnergy> energy;
    std::optional<HostClock> hostClock;
    std::optional<double> hostLearningRate;
    std::optional<StateCodec> state;
    std::optional<double> weightsOnDevice;
    std::optional<double> stateOnDevice;
    std::optional<Tier> boundary;
    std::optional<double> activationsOnHost;
    std::optional<Tier> vocabulary;
    std::optional<int> buffers;
    std::optional<double> diskShare;
    std::optional<DiskGroups> diskGroups;
    std::optional<double> weightsOnDisk;
    std::optional<double> gradientsOnDisk;
    std::optional<double> boundariesOnDisk;
    std::optional<VerifyReads> verify;
    // Settings of the run that a policy is made for; no options.
    Optimizer optimizer = Optimizer::AdamW;
    StateCodec lightState = StateCodec::Bits24; // of the other optimizers

    bool operator==(const PolicyNumbers&) const = default;
};

struct OptionInfo {
    std::string_view name; // "device-share"
    unsigned takenBy;      // Takes
    std::string_view want; // "a share from 0 to 1, or auto"
    std::string_view help;
    Status (*read)(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers);
    std::optional<std::string> (*text)(const PolicyNumbers& numbers); // nothing: not said
    void (*copy)(const PolicyNumbers& from, PolicyNumbers& to);

    // Whether a policy that takes `takes` takes this one.
    bool isTakenBy(unsigned takes) const noexcept
    {
        return takenBy == kAll || (takes & takenBy) != 0;
    }
};

std::span<const OptionInfo> policyOptionTable();

// The policy whose options are read: its name and the options it takes.
struct OptionTaker {
    std::string_view policy;
    unsigned takes = 0; // Takes
};

// Refuses options that no policy takes, and those that `taker` does not.
Result<PolicyNumbers> readPolicyOptions(
    const OptionTaker& taker, const std::map<std::string, std::string>& options);
std::map<std::string, std::string> policyOptionTexts(const PolicyNumbers& numbers);

// Refuses options that `taker` does not take.
Status checkTaken(const OptionTaker& taker, const PolicyNumbers& numbers);
// The numbers without options that are not among `takes`.
PolicyNumbers onlyTaken(unsigned takes, PolicyNumbers numbers);
// The numbers, and those of `others` that are empty here.
PolicyNumbers filledUp(PolicyNumbers numbers, const PolicyNumbers& others);

} // namespace mr
