// BpeModel: the "model" of a byte-level or character BPE tokenizer.json: words to ids.
//
// A word begins as one token per byte or character. The neighbours with the merge of lowest rank
// are merged, the leftmost first, until no merge is left. Short words do that in a small array,
// long ones with a heap, so a word of n tokens takes n log n steps.
//
// Source   Sennrich et al., Neural Machine Translation of Rare Words with Subword Units (2016).
// Threads  Read-only after load(); a Scratch belongs to one thread.
// Errors   load(): InvalidArgument names the field.

#pragma once

#include "core/tokenizer/pair_table.h"
#include "core/tokenizer/subword_model.h"

namespace mr {

// For byte b, the character that stands for it in a byte-level vocabulary: itself where it is
// printable, else 256 and up, in order.
std::array<std::int32_t, 256> byteLetters();

class BpeModel final : public WordModel
{
public:
    // `byteLevel`: words come as raw bytes.
    Status load(const JsonNode& node, bool byteLevel);
    // A vocabulary of raw bytes in which a pair of tokens has the rank of what it makes, as
    // tiktoken has it: a word that is a token is that, however it would be merged. `tokens`: by
    // rank, the 256 bytes first; ids begin at `first`.
    Status loadRanks(std::span<const std::string> tokens, TokenId first);

    std::string_view kind() const noexcept override { return "bpe"; }
    std::size_t maxWordBytes() const noexcept override { return std::size_t{256} << 20; }
    std::unique_ptr<WordModel::Scratch> makeScratch() const override;
    std::size_t wordBytes(std::string_view text) const noexcept override;
    void hide(std::string_view piece) override { m_whole.erase(std::string(piece)); }

private:
    struct Initial {
        std::vector<TokenId> ids; // empty: unknown
        bool fallback = false;    // one id per byte of a character
    };
    struct Merging;
    struct TextPair {
        std::string_view left;
        std::string_view right;
    };
    Status checkSettings(const JsonNode& node) const;
    Status loadVocabulary(const JsonNode& node);
    Status loadMerges(const JsonNode& node);
    Status loadUnknown(const JsonNode& node);
    Status addMerge(const JsonNode& list, std::size_t rank, TextPair texts);
    static bool readMerge(const nlohmann::json& value, TextPair& out);
    void loadBytes();
    void loadRankedPairs(std::span<const std::string> tokens);

    TokenId ofCharacter(std::int32_t code) const noexcept; // -1: none
    Initial initial(std::string_view character) const;
    Status tokenize(std::string_view word, WordModel::Scratch& scratch) const override;
    void begin(std::string_view word, std::vector<Symbol>& out) const;
    void merge(std::vector<Symbol>& word, Merging& scratch) const;
    void mergeLong(std::vector<Symbol>& word, Merging& scratch) const;

    PairTable m_merges;
    bool m_byteLevel = false;
    bool m_ignoreMerges = false;
    bool m_byteFallback = false;
    bool m_fuseUnknown = false;
    bool m_wordsAreApart = false; // no merge has something before a "▁"
    TokenId m_unknown = -1;
    Pieces m_whole;                       // whole words, for ignore_merges
    std::array<TokenId, 256> m_byteIds{}; // ids of "<0xNN>", -1: absent
    std::array<TokenId, 256> m_ofByte{};  // byte level: id of each byte, -1: see m_rareBytes
    std::array<Initial, 256> m_rareBytes; // byte level: ids of bytes without a token of their own
    std::unordered_map<std::int32_t, TokenId> m_byCharacter;
};

} // namespace mr
