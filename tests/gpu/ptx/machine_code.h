// The machine code that ptxas made of a kernel: registers of a thread, number of instructions.
//
// Threads  Any, once all binaries are registered.
// Source   ELF files of CUDA 13: section ".text.KERNEL", whose sh_info has the registers in its
//          upper byte; every instruction has 16 bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace mr::ptx {

struct KernelCode {
    std::uint32_t registers = 0;
    std::size_t instructions = 0; // with those that fill the last 128 bytes
};

// None if the kernel was not compiled for the target ("sm_86").
std::optional<KernelCode> codeOf(const std::string& kernel, const std::string& target);

} // namespace mr::ptx
