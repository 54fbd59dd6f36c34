// As much of cuBLASLt as the products need: column-major, in the words of its documentation. The
// host multiplies, when the stream comes to it.
//
// Threads  One, which enqueues.

#pragma once

#include <cstdint>

namespace mr::test {

struct FakeCublasLt {
    int proposals = 0;             // calls of the heuristic
    bool hasAlgorithm = true;      // false: it proposes nothing
    bool addsBiases = true;        // false: nothing for products with a bias
    std::uint32_t alignment = 0;   // the least that was asked for, of the last call
    std::uint32_t reductions = 99; // schemes allowed by the last call
    const float* scaleB = nullptr; // of its B, in the last product
};

FakeCublasLt& fakeCublasLt();

} // namespace mr::test
