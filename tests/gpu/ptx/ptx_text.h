// PTX as nvcc writes it, read into entries, variables and instructions.
//
// Reads what the kernels of gpu/ are compiled to: entries without calls, registers declared by
// ranges, variables of known size. Anything else is an error that names the line.
//
// Threads  Any; no state.
// Errors   InvalidArgument with "line N: ..." and the text that was not understood.
// Source   PTX ISA 9.0, chapters 4 (syntax), 5 (state spaces, types) and 11 (directives).

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr::ptx {

enum class OperandKind : std::uint8_t {
    Register, // name
    Integer,  // bits
    Float,    // bits of an F32 or F64, by `bytes`
    Symbol,   // name: a label or a variable
    Address,  // [name + offset]; an empty name: [offset]
    Vector,   // {parts}
    Pair,     // parts[0] | parts[1]
    Sink      // _
};

struct Operand {
    OperandKind kind = OperandKind::Sink;
    std::string name;
    std::uint64_t bits = 0;
    int bytes = 0; // of a Float
    std::int64_t offset = 0;
    std::vector<Operand> parts;
};

struct Instruction {
    int line = 0;
    std::string place; // in the source, as .loc says it
    std::string guard; // the predicate's register; empty: always
    bool guardNegated = false;
    std::string op; // with its suffixes: "ld.global.v4.u32"
    std::vector<Operand> operands;
};

struct Variable {
    std::string name;
    std::size_t align = 1;
    std::size_t bytes = 0;
    bool isDynamic = false; // extern .shared: its size is the launch's
};

struct Entry {
    std::string name;
    std::vector<Variable> parameters; // in order; offsets follow from size and alignment
    std::vector<Variable> shared;
    std::vector<Variable> local;
    std::map<std::string, std::string> registers; // "%r" (a range) or "%p7" -> type ("b32")
    std::vector<Instruction> instructions;
    std::map<std::string, std::size_t> labels; // -> index of the instruction after it
    int maxThreads = 0;                        // .maxntid; 0: not said
};

struct Module {
    std::string target; // "sm_80"
    std::vector<Variable> shared;
    std::vector<Entry> entries;

    const Entry* find(std::string_view name) const;
};

Result<Module> readPtx(std::string_view text);

} // namespace mr::ptx
