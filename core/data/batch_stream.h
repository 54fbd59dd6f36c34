// Datasets become whole optimizer steps of micro-batches.
//
//     files -> rows (record_reader) -> token sequences with a mask (TokenSet), short ones together
//     (PackedRows) where that is asked for -> Sampler -> StepBatch
//
// The count comes with the step (decisions.md 5): the number of trained tokens of the whole step is
// known before its first backward, because the loss scale needs it.
//
// Threads  TokenSet and Sampler are values, confined to their owner. BatchStream: next() from the
//          engine thread, everything else inside runs on its own data thread.
// Errors   build() names file and line. next(): Cancelled after close(), else the data thread's
//          error.

#pragma once

#include "core/data/bad_rows.h"
#include "core/data/packed_rows.h"
#include "core/data/sequence_store.h"
#include "core/data/unwritten_rows.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr {

struct TokenCounts {
    std::uint64_t rows = 0;       // read from files
    std::uint64_t cutRows = 0;    // longer than seqLen, cut
    std::uint64_t emptyRows = 0;  // nothing to train, left out
    std::uint64_t promptRows = 0; // a prompt and its answer, not text
    std::uint64_t trainedTokens = 0;
    std::uint64_t answers = 0;       // of conversations, trained
    std::uint64_t emptyThoughts = 0; // answers that begin with a thought that holds nothing
    // Rows that hold "/no_think" for a model that does not read it.
    std::uint64_t unreadSwitches = 0;
};

// Every sequence of a dataset, tokenised once. Sequences are at most seqLen + 1 tokens: inputs are
// all but the last, targets all but the first: one shift, done in BatchStream.
struct TokenSet : TokenCounts {
    SequenceStore sequences;
    UnwrittenRows unwritten; // rows with parts that the chat template leaves out; none is trained
    std::string layout;      // layouts of the files: "Alpaca; ShareGPT"
    std::map<std::string, std::string> mapping; // first file only
    std::vector<std::string> unusedColumns;     // columns of the files that train nothing
    std::shared_ptr<const BadRows> badRows;     // left out; null: never looked for
    PackedRows packing;                         // empty: every sequence is a row of a micro-batch

    std::int64_t count() const noexcept { return sequences.count(); }
    // Rows of micro-batches; a sampler draws their numbers.
    std::int64_t batchRows() const noexcept
    {
        return packing.count() > 0 ? packing.count() : count();
    }
};

struct TokenSetOptions {
    std::int64_t seqLen = 0;
    bool specials = true;        // BOS where the tokenizer adds it, EOS at the end of documents
    bool endOfDocument = true;   // with specials: false leaves the EOS out (evaluation of text)
    bool firstBlockOnly = false; // text: a document longer than a block is cut, not continued
    std::string split{};         // text: cut a file into documents here; empty: a file is one
    bool perLine = false;        // text: every line is a document
    std::string modelFolder{};   // its chat template writes conversations
    std::string chatTemplate{};  // in place of that (chat_templates.h); empty: as the sources say
    bool overlapTarget = true;   // text blocks share one token with the next, so that each block
                               // trains seqLen targets; false: blocks of seqLen tokens, seqLen - 1
                               // targets (as a plain PyTorch loop over blocks does)
    int threads = 0; // that encode; the set does not depend on it; 0: one a core
};

// Reads and tokenises all sources.
Result<TokenSet> buildTokenSet(const std::vector<DataSource>& sources, const Tokenizer& tokenizer,
    const TokenSetOptions& options);

// Which row comes when. Its whole state is these four numbers (decisions.md 20).
struct SamplerState {
    std::uint64_t seed = 1;
    std::uint64_t epoch = 0;
    std::uint64_t position = 0; // in this epoch's order
    std::uint64_t count = 0;    // rows of the set, to notice another dataset
};

class Sampler
{
public:
    explicit Sampler(SamplerState state);

    // The next row; a new epoch has a new order (Philox by seed and epoch; Fisher-Yates).
    std::int64_t next();
    const SamplerState& state() const noexcept { return m_state; }

private:
    void shuffle();
    SamplerState m_state;
    std::vector<std::uint32_t> m_order;
};

// One micro-batch: `microBatch` rows of seqLen tokens each, laid end to end, T = microBatch *
// seqLen. A row has one sequence or, packed, several one behind the other: each counts its
// positions from 0 and sees nothing before its own first token. Places beyond the last one's end
// are padding: id 0, target -1, visibleFrom of themselves.
struct MicroBatchData {
    std::vector<std::int32_t> ids;         // (T)
    std::vector<std::int32_t> targets;     // (T), -1: not trained
    std::vector<std::int32_t> positions;   // (T)
    std::vector<std::int32_t> visibleFrom; // (T), see AttentionArgs
    std::vector<std::int32_t> order;       // (T), see EmbedBackwardArgs
};

struct StepBatch {
    std::vector<MicroBatchData> micros;
    std::int64_t tokens = 0;        // without padding
    std::int64_t trainedTokens = 0; // in the whole step
    SamplerState after;             // the sampler once this step is taken; checkpoints keep it
};

struct BatchShape {
    std::int64_t seqLen = 0;
    std::int64_t microBatch = 1; // rows
    std::int64_t accumulate = 1; // micro-batches
};

// Fills `out` with a row for each of `sequences`; missing or empty ones are padding. `out` grows at
// first, then is reused without allocation.
void fillMicroBatch(
    std::span<const TokenSequence> sequences, const BatchShape& shape, MicroBatchData& out);

// Fills `out` with rows of `set` by number, -1 being padding. Reuses `scratch` like `out`.
Status readMicroBatch(const TokenSet& set, std::span<const std::int64_t> rows,
    const BatchShape& shape, TokenSequence& scratch, MicroBatchData& out);

class BatchStream
{
public:
    // Borrows `set`. Starts the data thread, which keeps two whole steps ready.
    static std::unique_ptr<BatchStream> start(
        const TokenSet& set, const BatchShape& shape, SamplerState state);
    virtual ~BatchStream() = default; // closes and joins

    // Blocks until the next step is there, swaps it into `out` and takes `out`'s memory back for
    // reuse, so nothing is allocated after the third call.
    virtual Status next(StepBatch& out) = 0;
    virtual void close() noexcept = 0;
};

} // namespace mr
