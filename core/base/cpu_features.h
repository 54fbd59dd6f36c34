// Instruction set of this processor, by the names under which bits are promised.
//
// Threads  Pure.

#pragma once

#include <millrace/status.h>

#include <string>
#include <string_view>

namespace mr {

// InvalidArgument with a sentence if the processor lacks an instruction of x86-64-v3 (AVX2, FMA,
// BMI, F16C ...). Programs call it first: anything else of ours may use these instructions.
Status checkProcessor();

// "avx512_bf16", "avx512" or "avx2".
std::string_view instructionSetName() noexcept;

// As the processor reports itself, from /proc/cpuinfo; "x86-64 processor" where that is not
// readable.
std::string processorName();

} // namespace mr
