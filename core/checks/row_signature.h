// A short signature of a row's text, from which the likeness of two rows is estimated.
//
// The text is taken as its set of shingles: each run of five words, of which letters in ASCII are
// folded and all but letters and digits is left out; an ideograph or a kana is a word. The likeness
// of two rows is the Jaccard index of their sets: shingles that both have, of those that either
// has. MinHash estimates it by how many of the least values under random functions agree; 64 of
// them have a standard error of 0.05 at a likeness of 0.8. One byte of each least value is kept.
// The answers have a signature of their own, of their single words, because rows that ask
// different things about one long text are alike and no repetition.
//
// Threads  Pure.
// Source   Broder, On the resemblance and containment of documents (1997); Li and König, b-bit
//          minwise hashing (2010).

#pragma once

#include "core/checks/row_turns.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace mr {

inline constexpr std::size_t kRowHashes = 64;
inline constexpr std::size_t kAnswerHashes = 16;

struct RowSignature {
    std::array<std::uint8_t, kRowHashes> row{};
    std::array<std::uint8_t, kAnswerHashes> answers{}; // all zero: the row is a text
};

// Nothing for a row with fewer than ten shingles, which says too little.
std::optional<RowSignature> signatureOf(const std::vector<RowTurn>& turns);

// Whether the estimates say that rows and answers are alike: 0.8 and more of their shingles, and
// three quarters of the words of their answers.
bool areAlike(const RowSignature& a, const RowSignature& b) noexcept;

} // namespace mr
