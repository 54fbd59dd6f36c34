// SpmNormalizer: the normalisation of a SentencePiece model before it looks for pieces, and the
// places where a part of the text is enough to know it.
//
// The library normalises from the front, one step at a time: a user-defined symbol stays as it is,
// the longest entry of the model's table is replaced, any other character is copied. Where no entry
// and no symbol lies across a place, a step begins there after any text.
//
// Source   normalizer.cc of SentencePiece 0.1.97.
// Threads  Read-only after load().
// Units    Bytes.

#pragma once

#include "core/tokenizer/precompiled_charsmap.h"
#include "core/tokenizer/prefix_tree.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

class SpmNormalizer
{
public:
    struct Step {
        std::string_view text; // replacement of the bytes
        std::size_t bytes = 0;
    };
    // The characters on both sides of a place, as they came and as they become.
    struct Border {
        std::int32_t rawLeft = 0;
        std::int32_t rawRight = 0;
        std::int32_t left = 0;
        std::int32_t right = 0;
    };

    // `charsmap`: the model's table, empty for none; `symbols`: the user-defined ones; `trims`:
    // extra spaces are removed. False: the table is damaged, and a text cannot come in parts.
    bool load(std::string_view charsmap, const std::vector<std::string_view>& symbols, bool trims);

    // Nothing where an entry may lie across `at`, where a side becomes nothing, or where too
    // little of the text is there to tell. User-defined symbols may lie across it.
    std::optional<Border> border(std::string_view text, std::size_t at) const noexcept;
    // Precondition: `text` is not empty.
    Step front(std::string_view text) const noexcept;

    // A part of a run that `begins` and `ends` it, `prefixed` with the mark that stands for a space
    // in front. Spaces become marks; where extra ones are removed, one of each run stays and none
    // at the borders of the run.
    std::string normalized(std::string_view text, bool begins, bool prefixed, bool ends) const;

private:
    bool joins(std::int32_t code) const noexcept;

    std::optional<PrecompiledCharsmap> m_table;
    PrecompiledCharsmap::Extent m_extent;
    PrefixTree m_symbols;
    std::size_t m_ahead = 0; // bytes that decide the first character's replacement
    bool m_hasSymbols = false;
    bool m_trims = false;
};

} // namespace mr
