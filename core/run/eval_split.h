// Holding out a share of a token set for evaluation.
//
// Threads  Functions of their arguments.
// Errors   Those of SequenceStore::read().

#pragma once

#include "core/data/batch_stream.h"

#include <utility>

namespace mr {

// At most 200 sequences and never more than the share (decisions.md 17); none of fewer than 20.
std::int64_t holdOutCount(std::int64_t sequences, double share) noexcept;

// {training, evaluation}, which share the store of `set`: `count` sequences at equal distances
// become the evaluation set. The choice depends on nothing else, so evaluating more or less often
// trains on the same data.
Result<std::pair<TokenSet, TokenSet>> holdOut(const TokenSet& set, std::int64_t count);

} // namespace mr
