// PackedRows: which short sequences share a row of a micro-batch.
//
// A row has room for seqLen inputs; a sequence of n tokens takes n - 1 of them, since its last
// token is only a target. The assignment is made once, from the lengths alone: best fit, longest
// first, sequences of one length in their order. So the same data gives the same rows everywhere.
//
// Threads  A value; const functions by any number of threads.
// Memory   4 bytes a sequence and 4 a row; while it is made, 12 more a sequence and 8 a row.

#pragma once

#include "core/data/sequence_store.h"

#include <cstdint>
#include <span>
#include <vector>

namespace mr {

class PackedRows
{
public:
    PackedRows() = default; // none: every sequence has a row of its own

    // O(n log n). No sequence may be longer than seqLen + 1 tokens.
    static PackedRows pack(const SequenceStore& sequences, std::int64_t seqLen);

    std::int64_t count() const noexcept;
    // The sequences of a row, ascending; at least one.
    std::span<const std::uint32_t> row(std::int64_t index) const noexcept;

private:
    std::vector<std::uint32_t> m_sequences; // row after row
    std::vector<std::uint32_t> m_ends;      // row i has sequences [ends[i - 1], ends[i])
};

} // namespace mr
