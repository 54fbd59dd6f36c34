// Counts heap allocations and their bytes, for the tests of "a step allocates nothing" and "no copy
// of the model".
//
// Link mr_test_heap_counter (it replaces operator new) into the test that counts, and no other. It
// does not see direct calls of malloc. Under thread sanitizer nothing is counted.
//
// Threads  Any.

#pragma once

#include <cstddef>
#include <cstdint>

namespace mr::test {

struct HeapCounts {
    std::uint64_t ours = 0;   // calls of operator new, except from libdnnl.so
    std::uint64_t oneDnn = 0; // calls by code inside libdnnl.so
};

HeapCounts heapCountsOfThisThread() noexcept;
HeapCounts heapCountsOfAllThreads() noexcept;

// Bytes not given back yet, of all threads, and their peak since the last reset.
std::size_t heapBytes() noexcept;
std::size_t heapPeakBytes() noexcept;
void resetHeapPeak() noexcept;

} // namespace mr::test
