// The rows that a run would take next, for a program that has no sampler of ours.
//
// Each row is stored once, numbered by its first use, so the first epoch is read in order and later
// ones cost an index. Three columns say all of a row: the input ids, the target of each (-1: not
// trained), and positions, which count from 0 within each document and are 0 where there is
// padding.
//
// Threads  One thread; blocks on the sequence store.
// Errors   Those of SequenceStore::read() and of the files.
// Units    Rows of seqLen places.

#pragma once

#include "core/data/batch_stream.h"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace mr {

struct JobOrder {
    std::vector<std::int64_t> rows;    // of the token set, by their number in the job
    std::vector<std::int32_t> numbers; // (steps, micro-batches, rows): numbers of rows
    std::vector<std::int64_t> trained; // (steps): trained tokens of the whole step
    std::vector<std::int64_t> tokens;  // (steps): without padding
};

// `steps` of them from where the sampler stands.
Result<JobOrder> drawOrder(
    const TokenSet& set, const BatchShape& shape, SamplerState sampler, std::int64_t steps);

// train.safetensors with the rows, index.safetensors with their order, and eval.safetensors if
// there is a set to evaluate on.
Status writeJobRows(const std::filesystem::path& folder, const TokenSet& train,
    const JobOrder& order, const TokenSet& eval, const BatchShape& shape);

} // namespace mr
