// Mutants of a kernel: its PTX with one instruction wrong. A check of the machine or a bound of the
// conformance table must catch each of them, else the checks prove less than they seem to.
//
// Threads  Any; no state.

#pragma once

#include "gpu/ptx/ptx_text.h"
#include "gpu/ptx/warp.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr::ptx {

enum class Fault : std::uint8_t {
    BarrierRemoved,
    WaitWeakened, // cp.async.wait_group lets one more group be under way
    WaitRemoved,
    CommitRemoved,
    MatrixSwapped,     // two registers that ldmatrix writes
    ProductSwapped,    // two registers of a fragment of mma
    ComparisonShifted, // of integers: < and <=, > and >=; another constant of == and !=
    ShuffleMoved,      // another distance or lane
    TransposeDropped,
    AddressMoved, // by 4 bytes, or by 16 if the access has more than 4
    Count
};

std::string_view nameOf(Fault fault);

struct Mutant {
    Fault fault = Fault::Count;
    int number = 0; // among those of its fault in the entry; stays when other code changes
    std::string form;
    std::size_t index = 0;              // of the instruction in the entry
    std::optional<Instruction> instead; // none: the instruction is removed
};

// In the order of the text.
std::vector<Mutant> mutantsOf(const Entry& entry);

// An entry that does what the other does, and whose steps tell more.
struct Probe {
    Entry entry;
    std::vector<std::size_t> places; // of the instructions of the other, and of its end
    // By comparison of the other: an instruction that runs only where its mutant has another
    // result.
    std::map<std::size_t, std::size_t> differences;
};

Probe probeOf(const Entry& entry, const std::vector<Mutant>& mutants);

// `entry` is an entry of `module`.
Result<Program> decodeMutant(const Module& module, const Entry& entry, const Mutant& mutant);

} // namespace mr::ptx
