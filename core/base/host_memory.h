// The machine's memory as this program may use it, and the budget a run gets of it.
//
// Available memory may grow: a virtual machine may get its memory from its host as it uses it, and
// reports little of it until then. So a budget that the user gives is believed, with a sentence
// where a run will hold more than is available now; only a budget that is chosen goes by what is
// available.
//
// Threads  Any. All but readHostMemory() are pure.
// Errors   None: nothing, where the kernel does not say.
// Units    Bytes.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace mr {

struct HostMemory {
    std::uint64_t totalBytes = 0; // 0: not known
    std::uint64_t availableBytes = 0;
    bool isLimited = false; // the total is a control group's limit, below the machine's memory
};

// MemTotal and MemAvailable, and where they are lower the limits (memory.max, memory.high) of this
// program's control group and of those around it (kernel documentation, "Control Group v2"). The
// page cache of a group counts as available. `root` is "/", except in tests.
std::optional<HostMemory> readHostMemory(const std::filesystem::path& root);

// decisions.md 18, and on a machine with little memory a quarter of it rather than nothing.
std::uint64_t defaultHostBudget(std::uint64_t availableBytes) noexcept;

// "; this machine has 94.0 GiB of memory, 60.1 GiB of it available; --host-memory gives another
// budget", to follow a sentence that says what does not fit. Empty if the total is not known.
std::string hostMemoryWords(const HostMemory& memory);

// The sentence for a run within its budget that will hold more than is available; else empty.
std::string believedBudgetWords(
    std::uint64_t budgetBytes, std::uint64_t heldBytes, const HostMemory& memory);

} // namespace mr
