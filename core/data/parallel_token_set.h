// Rows encoded by several threads, in the order of the file whatever their number.
//
// Rows are collected until there is work for all, handed out in pieces of a fixed number, and their
// sequences appended piece by piece.
//
// Threads    Confined to its owner; starts its own once there is enough to do.
// Ownership  Borrows tokenizer and options.
// Errors     add(): Cancelled once a row could not be encoded, and what finish() then reports: the
//            first such row in the order of the file, by file and line.

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
    // `threads` >= 1.
    ParallelTokenSet(const Tokenizer& tokenizer, const TokenSetOptions& options, int threads);

    Status add(const DataSource& source, const Document& document);
    Result<TokenSet> finish();

private:
    struct Piece {
        TokenSet set;
        Status status;
    };

    // `paths[i]`: the file of `rows[i]`. Ends at the first row that cannot be encoded.
    static Piece encode(std::span<const std::string> paths, std::span<const Document> rows,
        TokenSetBuilder& builder);
    Status flush();
    Status keep(const Piece& piece);
    Status append(const TokenSet& piece);

    std::vector<TokenSetBuilder> m_builders; // one a thread
    std::unique_ptr<ThreadPool> m_pool;
    std::vector<Document> m_rows; // [0, m_waiting) are to be encoded; the others keep their memory
    std::vector<std::string> m_paths;
    std::size_t m_waiting = 0;
    std::size_t m_waitingBytes = 0;
    std::vector<Piece> m_pieces;
    TokenSequence m_sequence;
    TokenSet m_set;
    Status m_failure;
};

} // namespace mr
