// instructions.md: each instruction that the kernels of gpu/ are compiled to, where it is used,
// which unit test runs it, and which conformance case executes it.
//
// The tests compare the table with the programs; MR_UPDATE_INSTRUCTIONS=1 writes it again.
//
// Errors   A file that cannot be read or written ends the program by QFAIL of the caller: an empty
//          table, or false.

#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace mr::ptx {

struct InstructionRow {
    std::string targets;     // "75 80": programs that have it
    std::size_t kernels = 0; // that have it on one of them
    std::string unit;        // the test class of tst_ptx that runs it
    std::string target;      // where `conformance` executes it
    std::string conformance; // the first case that does
};

using InstructionTable = std::map<std::string, InstructionRow>; // by name with its suffixes

InstructionTable readInstructionTable();
bool writeInstructionTable(const InstructionTable& table);
bool updatesInstructionTable();

// Names that the table gives to a unit test and that `run` lacks, a line each.
std::string withoutUnitCase(const std::string& unit, const std::set<std::string>& run);

} // namespace mr::ptx
