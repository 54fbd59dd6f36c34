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
#include "core/data/document_batch.h"
#include "core/data/token_set_builder.h"

#include <memory>
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

    static Piece encode(const DocumentBatch::Piece& rows, TokenSetBuilder& builder);
    Status keep(const Piece& piece);
    Status append(const TokenSet& piece);

    BadRows& m_bad;
    std::vector<TokenSetBuilder> m_builders; // one a thread
    std::unique_ptr<ThreadPool> m_pool;
    DocumentBatch m_batch;
    std::vector<Piece> m_pieces;
    TokenSequence m_sequence;
    TokenSet m_set;
    Status m_failure;
};

} // namespace mr
