// A CUDA runtime whose card is the PTX machine: what nvcc registers is read, and a launch runs
// the PTX of the kernel on the host before it returns.
//
// Threads  One.

#pragma once

#include "gpu/ptx/block.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mr::ptx {

struct Runtime {
    std::string target = "sm_80"; // whose PTX runs
    bool isDry = false;           // launches are noted and do nothing
    std::vector<std::string> dry; // the kernel, grid, block and shared memory of each
    Freedom freedom;
    Counters* counters = nullptr; // null: nothing is counted
    GlobalMemory memory;
    Status failure; // the first that went wrong; launches fail until it is cleared
    // By kernel and target: how often each step ran. Kept over launches.
    std::map<std::string, std::vector<std::uint64_t>> executed;
    std::map<std::string, std::uint64_t> launches; // by kernel
};

Runtime& runtime();

// Every program that was registered for the target, decoded.
Result<std::vector<const Program*>> programs();
// The kernel's program for another target.
Result<const Program*> programFor(const std::string& kernel, const std::string& target);
std::vector<std::string> targets();

} // namespace mr::ptx
