// Bits that the PTX machine computes for the cases of the conformance table, in a file that travels
// to a card, where tests/bench/gpu.sh compares.
//
// A case is exact if no kernel that it launches leaves a bit open: then a card must have the bits
// of the file. Other cases have a line for each set of bits that the programs of some architecture
// give.
//
// Threads  One.
// Errors   InvalidArgument for a line that cannot be read; those of core/base/file.h.

#pragma once

#include "gpu/ptx/warp.h"

#include <millrace/status.h>

#include <filesystem>
#include <set>
#include <string>
#include <tuple>

namespace mr::ptx {

// The first instruction of a program whose result the ISA leaves open: an approximate function, a
// tensor core, a sum of floats by atomics, or float arithmetic without a rounding, which may be
// fused. Empty: every card computes the bits of the machine.
std::string openInstruction(const Program& program);

struct CaseDigest {
    std::string name;
    bool isExact = false;
    std::string bits;  // CaseRun::digest()
    std::string error; // in tolerances; follows from the bits

    friend bool operator<(const CaseDigest& a, const CaseDigest& b)
    {
        return std::tie(a.name, a.isExact, a.bits) < std::tie(b.name, b.isExact, b.bits);
    }
};

using CaseDigests = std::set<CaseDigest>;

Result<CaseDigests> readDigests(const std::filesystem::path& path);
Status writeDigests(const std::filesystem::path& path, const CaseDigests& digests);

// Compares with tests/bench/ptx_digests.txt, or adds to that file if MR_UPDATE_DIGESTS is set. Says
// what differs; empty: nothing does.
std::string checkDigests(const CaseDigests& now);
std::filesystem::path digestsPath();

// Each digest that is not among `kept`, as a line; empty: all are.
std::string newDigests(const CaseDigests& kept, const CaseDigests& now);

// Names of exact cases with several lines; empty: every architecture gives the same bits.
std::string disagreements(const CaseDigests& digests);

} // namespace mr::ptx
