// PrecompiledCharsmap: SentencePiece's table of characters and what they are normalised to, as
// model files and the "Precompiled" normalizer of tokenizer.json carry it.
//
// [bytes of the trie: u32][trie: u32 units of a Darts-clone double array][texts, each ended by
// NUL]. A step from unit i goes to (i ^ offset(i)) ^ label; a leaf holds an offset into the texts.
//
// Source   darts.h of Darts-clone (DoubleArrayUnit).
// Threads  Read-only after read().
// Errors   InvalidArgument: the table is damaged or points outside itself.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Whether the table can be followed without checks, as libsentencepiece does; empty is sound.
Status checkCharsmap(std::string_view blob);

class PrecompiledCharsmap
{
public:
    static Result<PrecompiledCharsmap> read(std::string_view blob);

    // What the shortest beginning of `text` in the table becomes (nothing, perhaps); none: the
    // table has no beginning of it.
    std::optional<std::string_view> find(std::string_view text) const noexcept;

private:
    std::vector<std::uint32_t> m_units;
    std::string m_texts;
};

} // namespace mr
