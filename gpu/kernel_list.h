// The list of our kernels, so that all of them are on the card before the first step.
//
// A kernel is loaded at its first launch otherwise (lazy loading since CUDA 11.7), and loading may
// wait for the card to be idle while it holds the context's lock. If a stream waits at a gate then,
// the thread that would open the gate can be stuck behind that lock, and nothing moves any more
// (CUDA C++ Programming Guide, "Lazy Loading", potential hazards).
//
// launchKernel() takes a ListedKernel only, and listed<kernel>() puts the kernel on the list when
// the program is loaded.
//
// Threads  The list is complete before main() or when dlopen() returns; reads are free then.

#pragma once

#include <millrace/status.h>

#include <span>
#include <string>

namespace mr::gpu {

template <typename... Params>
struct ListedKernel {
    void (*function)(Params...) = nullptr;
};

struct KernelEntry {
    const void* kernel = nullptr;
    const char* text = nullptr; // as the compiler writes it
};

// True, for initialisers.
bool addToKernelList(const KernelEntry& entry);

std::span<const KernelEntry> listedKernels() noexcept;

// "rmsNormKernel<Bf16, 8>". clang writes no template arguments.
std::string kernelName(const KernelEntry& entry);

// Loads every listed kernel for the current device. Blocks for some 10 ms, expected.
// Errors  Those of toStatus(), with the kernel's name.
Status loadKernels();

template <auto Kernel>
constexpr const char* kernelText() noexcept
{
    return __PRETTY_FUNCTION__;
}

template <auto Kernel>
struct KernelListing {
    static const bool isListed;
};

template <auto Kernel>
const bool KernelListing<Kernel>::isListed = addToKernelList(
    {reinterpret_cast<const void*>(Kernel), kernelText<Kernel>()});

template <typename... Params>
constexpr ListedKernel<Params...> listedKernel(void (*kernel)(Params...)) noexcept
{
    return {kernel};
}

template <auto Kernel>
auto listed() noexcept
{
    (void)&KernelListing<Kernel>::isListed; // makes the initialiser of this kernel run
    return listedKernel(Kernel);
}

} // namespace mr::gpu
