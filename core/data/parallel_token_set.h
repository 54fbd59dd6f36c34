// Rows encoded by several threads, in the order of the file for any number of threads.
//
// Rows are collected until there is work for all, handed out in pieces of a fixed number, and their
// sequences appended piece by piece.
//
// Threads    Confined to its owner; starts its own once there is enough to do.
// Ownership  Borrows tokenizer, options and the book of bad rows.
// Errors     add(): Cancelled once finish() has something to report, or the book of bad rows wants
//            no more.

#pragma once

#include "core/base/parallel.h"
#include "core/data/token_set_builder.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr {

class ParallelTokenSet
{
public:
    // `threads` >= 1. Rows that cannot be encoded go to `bad`.
    ParallelTokenSet(
        const Tokenizer& tokenizer, const TokenSetOptions& options, int threads, BadRows& bad);

    // Borrows `source` until finish().
    Status add(const DataSource& source, const Document& document);
    // Encodes the rows that wait.
    Status flush();
    Result<TokenSet> finish();

private:
    struct Fault {
        const DataSource* source = nullptr;
        BadRow row;
    };
    struct Piece {
        TokenSet set;
        std::vector<Fault> faults;
        Status status;
    };

    // `sources[i]`: the file of `rows[i]`.
    static Piece encode(std::span<const DataSource* const> sources, std::span<const Document> rows,
        TokenSetBuilder& builder);
    Status keep(const Piece& piece);
    Status append(const TokenSet& piece);

    BadRows& m_bad;
    std::vector<TokenSetBuilder> m_builders; // one a thread
    std::unique_ptr<ThreadPool> m_pool;
    std::vector<Document> m_rows; // [0, m_waiting) are to be encoded; the others keep their memory
    std::vector<const DataSource*> m_sources; // source of each of m_rows
    bool m_isInText = false;                  // the next row has the rest of a text
    std::size_t m_waiting = 0;
    std::size_t m_waitingBytes = 0;
    std::vector<Piece> m_pieces;
    TokenSequence m_sequence;
    TokenSet m_set;
    Status m_failure;
};

} // namespace mr
