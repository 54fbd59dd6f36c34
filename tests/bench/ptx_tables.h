// The tables of ptx.md: what a launch was counted to ask for, and what is above the limits that a
// kernel should keep.

#pragma once

#include "bench/ptx_cards.h"
#include "bench/ptx_ops.h"
#include "bench/ptx_rig.h"

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mr::bench {

struct CountedRun {
    std::vector<std::string> names; // "attentionBackward/attentionDeltaKernel", or the op's
    std::vector<CountedLaunch> launches;
    std::int64_t leastBytes = 0; // of the op
};

Result<CountedRun> count(const CountedOp& op, const ModelShape& model, const Card& card);

// In percent.
struct Shares {
    double sectorsUsed = 0;
    double extraWaves = 0;
    double address = 0; // of the steps of the loop that takes the time
    double idleLanes = 0;
};

Shares sharesOf(const CountedLaunch& launch);

// Limits that this launch does not keep, without those whose reason is known. Empty: none.
std::string overLimits(const std::string& name, const CountedLaunch& launch);

// Lines of Markdown.
std::string counterHead();
std::string counterRows(const CountedRun& run, const Card& card);
std::string reasonTable();

} // namespace mr::bench
