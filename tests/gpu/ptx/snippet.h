// Small pieces of PTX, run by the machine: what the tests of single instructions and of the
// machine's own checks are made of.

#pragma once

#include "gpu/ptx/block.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace mr::ptx {

struct Snippet {
    std::string body;   // reads %in, writes to %out (U64 registers)
    std::string shared; // declarations of .shared
    Dims grid;
    Dims block{32, 1, 1};
    std::size_t dynamicShared = 0;
    std::vector<std::uint32_t> blocks; // that run; none: all
    Freedom freedom;
    bool inWritten = true;
    bool outWritten = false;
    std::uint64_t stepLimit = 0;
};

// The whole text of an entry around a body. Registers: %h<64>, %r<64>, %f<64>, %d<64>, %e<64>,
// %p<16>.
std::string textOf(const Snippet& snippet);

// Runs it over `in`, and puts what it wrote into `out`, whose size is that of the memory.
Status runSnippet(const Snippet& snippet, const std::vector<std::byte>& in,
    std::vector<std::byte>& out, Counters* counters = nullptr);

// Names of the instructions that snippets of this process have executed.
std::set<std::string>& instructionsRun();

} // namespace mr::ptx
