// The sequences of a dataset: in memory up to a limit, beyond it in a file without a name.
//
// A gigabyte of JSON lines makes some 300 million tokens, more than the whole of a small model's
// training: they need not be in memory to be drawn one sequence at a time.
//
// Threads    add() by one thread, before anything is read elsewhere; const functions by any number.
// Ownership  Copies and parts share the stored tokens; the last of them frees them.
// Errors     Io with the folder and the system's reason: the file cannot be made, written or read.

#pragma once

#include "core/base/file.h"
#include "core/tokenizer/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mr {

// trained[t]: token t is a target. Reused from sequence to sequence.
struct TokenSequence {
    std::vector<TokenId> tokens;
    std::vector<std::uint8_t> trained;
};

struct SequenceSpill {
    std::filesystem::path folder{}; // holds the file; empty: $XDG_CACHE_HOME/millrace, ~/.cache/...
    std::size_t memoryTokens = std::size_t{4} << 20; // 4 bytes each
};

// An empty file without a name in `folder`; empty: as SequenceSpill::folder.
Result<File> makeSpillFile(const std::filesystem::path& folder);

class SequenceStore
{
public:
    SequenceStore();
    explicit SequenceStore(SequenceSpill spill);

    // A sequence more; both have its length. Not for a part. Ids are not negative.
    Status add(std::span<const TokenId> tokens, std::span<const std::uint8_t> trained);

    std::int64_t count() const noexcept;
    std::uint64_t tokens() const noexcept; // in all its sequences
    std::size_t length(std::int64_t index) const noexcept;
    Status read(std::int64_t index, TokenSequence& out) const;

    // {the others, these}, each in its order. `these` ascends.
    std::pair<SequenceStore, SequenceStore> split(std::span<const std::uint32_t> these) const;
    SequenceStore firstOnes(std::int64_t count) const;

private:
    struct Bulk;

    SequenceStore(std::shared_ptr<Bulk> bulk, std::vector<std::uint32_t> picks);
    std::size_t stored(std::int64_t index) const noexcept; // its number among all that are stored

    std::shared_ptr<Bulk> m_bulk;
    bool m_isPart = false;
    std::vector<std::uint32_t> m_picks; // part: numbers of its sequences in m_bulk
};

} // namespace mr
