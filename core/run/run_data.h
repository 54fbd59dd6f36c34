// The data of a run: its tokens, and the hash that tells them apart from others.
//
// Threads  Functions of their arguments; readRunData() blocks on files and starts threads of its
//          own.
// Errors   readRunData(): as Tokenizer::open() and buildTokenSet(); InvalidArgument for another
//          model's tokenizer, and for data with nothing to train. dataHash(): as
//          SequenceStore::read().

#pragma once

#include "core/data/batch_stream.h"
#include "core/data/columns.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/library.h>
#include <millrace/run_spec.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace mr {

// The folder of the model with the chat template that writes conversations and pairs.
std::string modelFolder(const RunSpec& spec);

// A run decides how rows are written when it begins, and keeps that in its record: every source
// that names no style gets `style`.
RunSpec withStyle(RunSpec spec, RowStyle style);

// Puts the text of a chat template that is a file into the spec.
Result<RunSpec> withTemplateText(RunSpec spec);

struct RunData {
    std::unique_ptr<Tokenizer> tokenizer;
    TokenSet train; // packed, if the spec asks for it
    TokenSet eval;  // never packed: its loss is that of any other run
    DataReport report;
    std::string chatTemplate; // that the model is taught; empty: it has its own, or needs none
};

// Reads the data of a resolved spec. `vocab` is that of the model, which the tokenizer must fit.
Result<RunData> readRunData(const RunSpec& spec, std::int64_t vocab);

// The rows that were left out, a line of JSON each, as skipped.jsonl in `runDir`; none: no file.
// Io: it cannot be written.
Status writeSkippedRows(const RunData& data, const std::filesystem::path& runDir);

// Hash of the data that the sampler draws from, so that a resumed run finds the batches it would
// have had.
Result<std::string> dataHash(const TokenSet& set);

} // namespace mr
