// BpeModel: the "model" of a byte-level or character BPE tokenizer.json: words to ids.
//
// A word begins as one token per byte or character; the neighbours whose merge has the lowest rank
// are merged, the leftmost first, until no merge is left. Short words do that in a small array,
// long ones with a heap, so a word of n tokens takes n log n steps; words met before come from a
// cache.
//
// Source   Sennrich et al., Neural Machine Translation of Rare Words with Subword Units (2016).
// Threads  Read-only after load(); a Scratch belongs to one thread.
// Errors   load(): InvalidArgument names the field.

#pragma once

#include "core/data/json_node.h"
#include "core/data/pair_table.h"
#include "core/data/tokenizer.h"

#include <array>
#include <span>
#include <unordered_map>

namespace mr {

// For byte b, the character that stands for it in a byte-level vocabulary: itself where it is
// printable, else 256 and up, in order.
std::array<std::int32_t, 256> byteLetters();

// What stands for a space in character vocabularies: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class BpeModel
{
public:
    struct Symbol {
        TokenId id = -1;
        std::uint32_t bytes = 0; // of the word
    };
    class Scratch;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept
        {
            return std::hash<std::string_view>()(text);
        }
    };
    using Pieces = std::unordered_map<std::string, TokenId, Hash, std::equal_to<>>;

    static constexpr std::size_t kMaxWordBytes = std::size_t{256} << 20;

    // `byteLevel`: words come as raw bytes.
    Status load(const JsonNode& node, bool byteLevel);

    // The tokens of a word, valid until the next call. Precondition: at most kMaxWordBytes.
    std::span<const Symbol> encode(std::string_view word, Scratch& scratch) const;
    // Bytes from the beginning of `text` that can be encoded apart from the rest.
    std::size_t wordBytes(std::string_view text) const noexcept;

    TokenId find(std::string_view piece) const; // as the file spells it; -1: absent
    const Pieces& vocabulary() const noexcept { return m_ids; }

private:
    struct Initial {
        std::vector<TokenId> ids; // empty: unknown
        bool fallback = false;    // one id per byte of a character
    };
    Status checkSettings(const JsonNode& node) const;
    Status loadVocabulary(const JsonNode& node);
    Status loadMerges(const JsonNode& node);
    Status loadUnknown(const JsonNode& node);
    Status addMerge(
        const JsonNode& node, std::string_view left, std::string_view right, std::uint32_t rank);
    void loadBytes();

    TokenId ofCharacter(std::int32_t code) const noexcept; // -1: none
    Initial initial(std::string_view character) const;
    void begin(std::string_view word, Scratch& scratch) const;
    void merge(std::vector<Symbol>& word, Scratch& scratch) const;
    void mergeLong(std::vector<Symbol>& word, Scratch& scratch) const;

    Pieces m_ids; // as the file spells them
    PairTable m_merges;
    bool m_byteLevel = false;
    bool m_ignoreMerges = false;
    bool m_byteFallback = false;
    bool m_fuseUnknown = false;
    bool m_wordsAreApart = false; // no merge has something before a "▁"
    TokenId m_unknown = -1;
    Pieces m_whole;                       // of ignore_merges
    std::array<TokenId, 256> m_byteIds{}; // of "<0xNN>", -1: absent
    std::array<TokenId, 256> m_ofByte{};  // byte level: of a byte, -1: see m_rareBytes
    std::array<Initial, 256> m_rareBytes; // byte level: of bytes without a token of their own
    std::unordered_map<std::int32_t, TokenId> m_byCharacter;
};

// What a thread keeps between words.
class BpeModel::Scratch
{
public:
    Scratch();

private:
    friend class BpeModel;
    static constexpr std::size_t kCachedBytes = 22;
    static constexpr std::size_t kCachedSymbols = 8;
    static constexpr std::size_t kEntries = std::size_t{1} << 15;
    struct Entry {
        std::uint8_t bytes = 0; // 0: free
        std::uint8_t count = 0;
        std::array<char, kCachedBytes> text{};
        std::array<Symbol, kCachedSymbols> symbols{};
    };
    struct Node {
        Symbol symbol;
        std::uint32_t before = UINT32_MAX;
        std::uint32_t after = UINT32_MAX;
    };

    static std::size_t place(std::string_view word) noexcept;

    std::vector<Entry> m_cache; // one place per hash: the newest word has it
    std::vector<Symbol> m_word;
    std::vector<PairTable::Merge> m_ranks; // of a short word: what symbol i and the next become
    std::vector<Node> m_nodes;             // of a long one
    std::vector<std::uint64_t> m_heap;     // rank << 32 | node
};

} // namespace mr
