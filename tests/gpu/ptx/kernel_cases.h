// Conformance cases on the PTX machine: what a case launches, and what is wrong with its results.
//
// Threads  One.

#pragma once

#include "core/device/device.h"
#include "core/prove/conformance_case.h"
#include "gpu/ptx/block.h"

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
std::unique_ptr<Device> deviceOf(const std::string& target, int rows);

// Every number of rows that lets another tile of attention run.
std::vector<int> rowsOf(const conformance::Case& line);

// Runs the case once a round. Empty if all was well, else the first fault.
std::string missed(
    Device& device, const conformance::Case& line, std::span<const Round> rounds = rounds());

using Launches = std::map<std::string, std::uint64_t>; // by kernel

// What a case launches on a target.
struct DryRun {
    Launches kernels;
    std::vector<std::string> shapes; // of each launch: kernel, grid, block, shared memory

    friend bool operator==(const DryRun&, const DryRun&) = default;
};

DryRun dryRunOf(const conformance::Case& line, const std::string& target, int rows);
Launches launchesOf(const conformance::Case& line, const std::string& target, int rows);

} // namespace mr::ptx
