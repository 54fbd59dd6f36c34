// The options of a policy: text to numbers.
//
// Threads  Pure.
// Errors   InvalidArgument names the option and what would be right.

#pragma once

#include "core/plan/placement.h"
#include "core/plan/policy.h"
#include "core/plan/traversal.h"
#include "core/plan/update_clock.h"

#include <string>
#include <string_view>

namespace mr {

// Which options a policy takes, beside clip-mode and state.
enum Takes : unsigned {
    kOrder = 1,
    kTile = 2,
    kLate = 4,
    kDeviceShare = 8,
    kWarmup = 16,  // warmup, accumulate-on
    kColumns = 32, // urgent, select, interval, overlap, energy, host-clock, host-lr
    kDisk = 128,   // disk-share, verify
    kHomes = 64,   // weights-on-device, state-on-device, boundary, activations-on-host, turns
    kAllDisk = 256 // weights-, gradients- and boundaries-on-disk
};

// The numbers of one policy, after its options.
struct PolicyNumbers {
    WorkOrder order{};
    double lateShare = 0.0;
    double deviceShare = 0.0; // kBalanced: it follows from measured rates
    double diskShare = 0.0;
    StreamedHomes homes;
    int turns = 2;
    double urgentShare = 0.0;
    WindowRule window;
    HostClock hostClock = HostClock::Steps;
    bool intervalByMagnitude = false;
    double hostLearningRate = 1.0;
    ColumnEnergy columnEnergy = ColumnEnergy::Squares;
    Tier windowSums = Tier::PinnedHost;
    std::int64_t tileElements = kTileElements;
    StateCodec stateCodec = StateCodec::Plain;
    ClipMode clipMode = ClipMode::Exact;
};

struct OptionTaker {
    std::string_view policy;
    unsigned takes = 0; // Takes
};

// Sets what `option` is about.
Status applyOption(const OptionTaker& taker, const std::string& option, const std::string& value,
    PolicyNumbers& numbers);

} // namespace mr
