// Conformance cases as trials of mutants: which cases execute an instruction, and which of them
// notice that it is wrong.
//
// Threads  One.

#pragma once

#include "core/prove/conformance_case.h"
#include "gpu/ptx/mutations.h"
#include "gpu/ptx/ptx_runtime.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr::ptx {

struct Trial {
    const conformance::Case* line = nullptr;
    int rows = 0;                  // of attention
    std::uint64_t steps = 0;       // of warps, in one round
    std::string block;             // of the kernel's first launch, and its shared memory
    std::vector<bool> isExecuted;  // by instruction of the kernel
    std::vector<bool> isDifferent; // ... a mutant of the comparison has another result somewhere
};

struct KernelTrials {
    std::string name; // "rmsNormKernel<Bf16, 8>"
    KernelText text;
    std::vector<Mutant> mutants;
    std::vector<Trial> trials; // the shortest first
};

// Runs each case that launches one of the kernels once without a fault, and adds its trials. Of
// mutants that differ in nothing but the copy of an unrolled loop one is left. The table must
// outlive the trials.
Status addTrials(const conformance::Table& table, std::vector<KernelTrials>& kernels);

enum class Verdict : std::uint8_t {
    CaughtByCheck,   // of the machine
    CaughtByNumbers, // beyond the bounds of the case, or other bits in another round
    Survived,
    NotDifferent, // a comparison that has the right result wherever a case executes it
    NotExecuted,
    Count
};

std::string_view nameOf(Verdict verdict);

inline bool isCaught(Verdict verdict)
{
    return verdict == Verdict::CaughtByCheck || verdict == Verdict::CaughtByNumbers;
}

inline constexpr std::size_t kMostTrials = 24; // of a mutant, at first

// Runs trials that execute the instruction until one fails: `most` of them, from the shortest to
// the longest.
Result<Verdict> verdictOn(
    const KernelTrials& kernel, const Mutant& mutant, std::size_t most = kMostTrials);

} // namespace mr::ptx
