// How often the heap was asked for memory, for "a step allocates nothing" tests.
//
// Link mr_test_heap_counter (it replaces operator new) into the test that counts, and no other.
// What goes through malloc directly is not seen.
//
// Threads  Any.

#pragma once

#include <cstdint>

namespace mr::test {

struct HeapCounts {
    std::uint64_t ours = 0;   // calls of operator new, except:
    std::uint64_t oneDnn = 0; // those made by code inside libdnnl.so
};

HeapCounts heapCountsOfThisThread() noexcept;
HeapCounts heapCountsOfAllThreads() noexcept;

} // namespace mr::test
