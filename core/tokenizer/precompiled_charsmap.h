// PrecompiledCharsmap: SentencePiece's table of characters and their replacements, as model files
// and the "Precompiled" normalizer of tokenizer.json carry it.
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

    // Replacement, perhaps empty, of the shortest entry that begins `text`; none: no entry does.
    std::optional<std::string_view> find(std::string_view text) const noexcept;

    struct Entry {
        std::size_t bytes = 0;    // length of the text in the table
        std::string_view becomes; // its replacement; may be empty
    };
    // The longest entry that begins `text`.
    std::optional<Entry> findLongest(std::string_view text) const noexcept;

    struct Extent {
        std::vector<std::int32_t> joining; // characters behind the first of some entry, ascending
        std::size_t mostBytes = 0;         // length of the longest entry
    };
    // None: the trie has a cycle or an entry is no UTF-8, as in no published table.
    std::optional<Extent> extent() const;

private:
    // Calls found(Entry), the shortest entry first, until that returns false.
    template <typename Found>
    void eachBeginning(std::string_view text, const Found& found) const noexcept;
    std::string_view textOf(std::uint64_t base) const noexcept;

    std::vector<std::uint32_t> m_units;
    std::string m_texts;
};

} // namespace mr
