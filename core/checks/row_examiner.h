// One row after another, looked at by itself.
//
// Threads    Confined to its owner; one for each thread.
// Ownership  Borrows tokenizer and options.
// Errors     Those of TokenSetBuilder but InvalidArgument, which is a fact about the row.

#pragma once

#include "core/checks/row_repeats.h"
#include "core/data/token_set_builder.h"

#include <millrace/data_checks.h>

namespace mr {

struct RowFacts {
    std::int64_t row = 0;
    std::int64_t line = 0;
    std::int64_t tokens = 0; // before cutting; 0: unknown, or a text
    RowHash hash;            // of what is trained
    std::optional<RowSignature> signature;
    // By RowCheck, in words: what is wrong; empty: nothing.
    std::array<std::string_view, kRowChecks> why{};
};

class RowExaminer
{
public:
    // Without a tokenizer the checks that need one find nothing.
    RowExaminer(const Tokenizer* tokenizer, const TokenSetOptions& options);

    // Facts of a row; nothing before the last part of a text that comes in parts.
    Result<std::optional<RowFacts>> examine(const Document& document);

private:
    Status countTokens(const Document& document, RowFacts& facts);
    void noteTokens(
        const TokenCounts& before, std::uint64_t unwrittenBefore, RowFacts& facts) const;
    RowHash hashOf(const Document& document);

    std::optional<TokenSetBuilder> m_builder;
    std::int64_t m_seqLen;
    std::optional<RowFacts> m_open; // of a text that is not at its end
    std::string m_content;          // of the row, to hash it; its memory is used again
};

} // namespace mr
