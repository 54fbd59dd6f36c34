// Conformance cases on the PTX machine: what a case launches, and what is wrong with its results.
//
// Threads  One.

#pragma once

#include "core/device/device.h"
#include "core/prove/conformance_case.h"
#include "gpu/ptx/block.h"
#include "gpu/ptx/case_digests.h"
#include "gpu/simt/kernel_device.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr::ptx {

struct Round {
    Freedom freedom;
    bool sameBits = true; // as the first round
};

// Warps and lanes in other orders, copies at once and late, must not change a bit; how tensor cores
// add and how far approximations err may, within the bounds of the table.
std::span<const Round> rounds();

// A device for one case: the machine forgets the memory of those before. `rows`: that a block of
// attention may have at most.
std::unique_ptr<simt::KernelDevice> deviceOf(const std::string& target, int rows);

// Every number of rows that lets another tile of attention run.
std::vector<int> rowsOf(const conformance::Case& line);

// MR_PTX_SEED: 0 but in the long run, which tries other inputs and orders.
unsigned otherSeed();

// Runs the case once a round. Empty if all was well, else the first fault. `digest` may be null: it
// takes bits and error of the first round, and if it is exact, all rounds must give these bits.
std::string missed(Device& device, const conformance::Case& line,
    std::span<const Round> rounds = rounds(), CaseDigest* digest = nullptr);

using Launches = std::map<std::string, std::uint64_t>; // by kernel

// The launches of a case on a target.
struct DryRun {
    Launches kernels;
    std::vector<std::string> shapes; // of each launch: kernel, grid, block, shared memory

    friend bool operator==(const DryRun&, const DryRun&) = default;
};

// No kernel of these leaves a bit open on the runtime's target.
bool areExact(const Launches& launches);

// Whether a card of the target has tensor cores that multiply BF16: the one thing about a card that
// the host's choices of kernels depend on here.
bool hasTensorCores(const std::string& target);

DryRun dryRunOf(const conformance::Case& line, const std::string& target, int rows);

} // namespace mr::ptx
