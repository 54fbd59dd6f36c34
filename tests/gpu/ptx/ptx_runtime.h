// The card of the fake CUDA runtime that runs kernels by the PTX machine: what nvcc registers is
// read, and a launch runs the PTX of the kernel on the host when its stream comes to it.
//
// Threads  One; launches may run on another, one at a time.

#pragma once

#include "gpu/ptx/block.h"
#include "gpu/ptx/ptx_text.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mr::ptx {

struct Runtime {
    std::string target = "sm_80"; // of the card: the newest PTX that it takes runs
    bool isDry = false;           // launches are noted and do nothing
    std::vector<std::string> dry; // the kernel, grid, block and shared memory of each
    Freedom freedom;
    Counters* counters = nullptr;                  // null: nothing is counted
    std::map<std::string, const Program*> instead; // run in place of kernels' own, by kernel
    std::uint64_t stepLimit = 0;                   // of a launch; 0: none
    GlobalMemory memory;
    Status failure; // the first that went wrong; launches fail until it is cleared
    // By kernel and target: how often each step ran. Kept over launches.
    std::map<std::string, std::vector<std::uint64_t>> executed;
    std::map<std::string, std::uint64_t> launches;                      // by kernel
    std::function<std::vector<std::uint32_t>(const Dims& grid)> sample; // blocks; null: all
    std::function<void(const Launch&)> onLaunch;                        // after it has run
};

Runtime& runtime();

// Makes runtime() the card of the fake runtime, until resetFakeCard().
void installMachine();
// An array inside an allocation, whose bytes have values. What lies between such arrays may not be
// reached any more.
void nameMemory(const void* begin, std::size_t bytes, std::string name);

// Every program that was registered for the target, decoded.
Result<std::vector<const Program*>> programs();
// The kernel's program for another target.
Result<const Program*> programFor(const std::string& kernel, const std::string& target);
// The programs that were compiled: "sm_75", "sm_80".
std::vector<std::string> targets();

// Machine code of a binary that was registered: an ELF file for one architecture ("sm_86").
struct MachineCode {
    std::string target;
    std::span<const std::byte> elf;
};
const std::vector<MachineCode>& machineCode();
struct KernelText {
    const Module* module = nullptr;
    const Entry* entry = nullptr;
};

// The text of a kernel, by its function on the host.
Result<KernelText> kernelText(const void* function, const std::string& target);

} // namespace mr::ptx
