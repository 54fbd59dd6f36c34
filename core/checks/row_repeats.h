// Rows that repeat others, among any number of rows in bounded memory: about 130 bytes a row.
//
// Equal rows have equal hashes of 128 bits. Rows that are alike are found by locality-sensitive
// hashing: a signature is cut into 16 bands of 4 bytes, and rows that agree in a band are compared.
// Two rows of a likeness of 0.8 meet with a probability of 0.9998. In a band, a row is compared
// with at most the 64 first ones, so a file of nothing but near duplicates takes no longer.
//
// Threads  Confined to its owner.
// Units    Rows by their index in the order of adding.
// Source   Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3 (banding).

#pragma once

#include "core/checks/row_signature.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace mr {

struct RowHash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    friend bool operator==(const RowHash&, const RowHash&) = default;
    friend auto operator<=>(const RowHash&, const RowHash&) = default;
};

class RowRepeats
{
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // Rows of the evaluation data come before all others.
    void add(const RowHash& hash, const std::optional<RowSignature>& signature, bool isEvaluation);

    std::size_t count() const noexcept { return m_rows.size(); }
    std::size_t evaluationCount() const noexcept { return m_evaluation; }

    // By row: the first earlier one of its kind, and of the evaluation data, that it repeats;
    // kNone. A row that is alike to a repeated row counts as a repetition of it, so of a cluster
    // the first row stays.
    struct Found {
        std::vector<std::uint32_t> same;
        std::vector<std::uint32_t> alike;
        std::vector<std::uint32_t> sameInEvaluation;
        std::vector<std::uint32_t> alikeInEvaluation;
    };
    Found find() const;

private:
    struct Row {
        RowHash hash;
        std::uint32_t signature = kNone; // in m_signatures
    };

    bool isEvaluation(std::uint32_t row) const noexcept { return row < m_evaluation; }
    std::vector<std::uint32_t> findSame(Found& out) const; // rows that remain to be compared
    void compareBand(std::size_t band, const std::vector<std::uint32_t>& rows, Found& out) const;
    void compareBucket(const std::vector<std::uint32_t>& bucket, Found& out) const;

    std::deque<Row> m_rows;
    std::deque<RowSignature> m_signatures; // a deque does not copy as it grows
    std::size_t m_evaluation = 0;
};

} // namespace mr
