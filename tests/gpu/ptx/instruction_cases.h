// Cases of each instruction of one lane, by the words of the PTX ISA: operands and result as bits,
// written down, not computed by the code under test.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mr::ptx {

// Letters of registers: h 16 bits, r 32, f F32, d 64, e F64, p a predicate.
struct InstructionCase {
    std::string op;
    char result = 'r';
    std::string operands; // a letter each
    std::vector<std::uint64_t> values;
    std::uint64_t expected = 0;
};

const std::vector<InstructionCase>& instructionCases();

} // namespace mr::ptx
