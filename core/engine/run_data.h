// The data of a run: its tokens, and what tells them apart from others.
//
// Threads  Functions of their arguments; tokens() blocks on files and starts threads of its own.
// Errors   tokens(): as buildTokenSet(). dataHash(): as SequenceStore::read().

#pragma once

#include "core/data/batch_stream.h"
#include "core/data/columns.h"

#include <millrace/run_spec.h>

#include <string>
#include <vector>

namespace mr {

// Whose chat template writes conversations and pairs.
std::string modelFolder(const RunSpec& spec);

// How rows are written is decided when a run begins and kept in its record: every source that says
// nothing gets `style`.
RunSpec withStyle(RunSpec spec, RowStyle style);

Result<TokenSet> tokens(
    const std::vector<DataSource>& sources, const Tokenizer& tokenizer, const RunSpec& spec);

// What the sampler draws from, so that a resumed run sees what it would have seen.
Result<std::string> dataHash(const TokenSet& set);

} // namespace mr
