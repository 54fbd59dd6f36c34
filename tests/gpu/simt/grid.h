// Runs the grid of a kernel on the host, block after block, every thread of a block as a fiber.
//
// Which thread goes on after a switch, and which block comes next, is chosen by the Schedule. A
// kernel that gives other bits under another schedule misses a barrier.
//
// Threads  One: all state here is that of the one grid that runs.
// Errors   What a kernel did wrong (a barrier not all threads reach, a shuffle without its lanes)
//          stops the grid; faultText() says what, in which block and which thread.

#pragma once

#include "gpu/simt/include/cuda_runtime_api.h"
#include "gpu/simt/vector_types.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace mr::simt {

enum class Order : std::uint8_t { Ascending, Descending, Random };

struct Schedule {
    Order order = Order::Ascending;
    unsigned seed = 1;         // for Order::Random
    bool copiesAtOnce = false; // when asynchronous copies arrive: at once, or at their wait
};

// A way in which a kernel was launched.
struct KernelRun {
    const void* kernel = nullptr;
    unsigned threads = 0;    // of a block
    bool hasColumns = false; // more than one block along y

    friend auto operator<=>(const KernelRun&, const KernelRun&) = default;
};

// Kernels whose attributes were asked for, which loads them on a card; launches so far.
std::set<const void*>& loadedKernels();
std::set<KernelRun>& kernelRuns();

// Applies to all grids that run from now on.
void setSchedule(const Schedule& schedule);

struct Launch {
    const void* kernel = nullptr; // names it to cudaFuncSetAttribute
    dim3 grid;
    dim3 block;
    std::size_t sharedBytes = 0; // dynamic; filled with bytes 0xFF before each block
    void (*runThread)(const void* call) = nullptr;
    const void* call = nullptr;
};

// Precondition: the block has 1 to 1024 threads.
cudaError_t runGrid(const Launch& launch);

// Error of the last grid that failed. Empty: none failed.
const std::string& faultText() noexcept;

} // namespace mr::simt
