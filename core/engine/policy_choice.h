// Which policy a run takes: tried out as plans, compared by bytes and by forecast.
//
// Threads  Pure.
// Errors   Those of makePolicy() and planMemory(). That nothing fits is no error: RunSetup::limit.

#pragma once

#include "core/engine/run_setup.h"

#include <map>
#include <span>
#include <string>

namespace mr {

// Keeps optimizer state on disk, where the user named a folder for it.
inline constexpr std::string_view kDiskPolicy = "ssd-vertical";

// One way to do a run.
struct PolicyTrial {
    std::string policy;
    std::map<std::string, std::string> options;
    bool recompute = false;
};

// For policies that take `tile`: an eighth of the largest block, at most the usual tile. The fewer
// bytes are on their way at once, the less room they need.
std::string smallTile(const ModelShape& shape);

// Sets policy, memory plan, limit, forecast and traffic of `setup` to those of `trial`.
Status planWith(RunSetup& setup, const PolicyTrial& trial);

// Takes the fastest of `trials` that fits, by forecast; without rates the first. Those with options
// that their policy does not take are passed over. If nothing fits, what lacks least, and
// setup.limit says how much. Precondition: one of them can be planned.
Status chooseAmong(RunSetup& setup, std::span<const PolicyTrial> trials);

// Fills in what spec.policy, its options and spec.recompute leave open: of what fits, the fastest
// by forecast; without rates the first that fits, from everything on the device without
// recomputation to everything on the host with it. If nothing fits, what lacks least, and `limit`
// says how much.
Status choosePolicy(RunSetup& setup);

} // namespace mr
