// WordModel: the "model" of a tokenizer.json: the words that the stages before it cut out, to ids.
//
// Words met before come from a cache that belongs to the thread, so a model is asked once for each
// word that is usual.
//
// Threads  Read-only after read() and hide(); a Scratch belongs to one thread.
// Errors   read(): InvalidArgument names the field. encode(): InvalidArgument where a word has no
//          ids at all.
// Units    Bytes.

#pragma once

#include "core/tokenizer/json_node.h"
#include "core/tokenizer/tokenizer.h"

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>

namespace mr {

// Mark for a space in vocabularies of characters: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

std::string inQuotes(std::string_view text);

class WordModel
{
public:
    struct Symbol {
        TokenId id = -1;
        std::uint32_t bytes = 0; // length in the word
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

    // `byteLevel`: words come as raw bytes, which the vocabulary spells in letters.
    static Result<std::unique_ptr<WordModel>> read(const JsonNode& node, bool byteLevel);

    WordModel() = default;
    virtual ~WordModel() = default;
    WordModel(const WordModel&) = delete;
    WordModel& operator=(const WordModel&) = delete;

    virtual std::string_view kind() const noexcept = 0; // "bpe", "unigram"
    virtual std::size_t maxWordBytes() const noexcept = 0;
    virtual std::unique_ptr<Scratch> makeScratch() const = 0;
    // Bytes from the beginning of `text` that can be encoded apart from the rest.
    virtual std::size_t wordBytes(std::string_view text) const noexcept { return text.size(); }
    // A control token: text never becomes it from now on. Call before the first encode().
    virtual void hide(std::string_view piece) = 0;

    // The tokens of a word, valid until the next call. Precondition: at most maxWordBytes().
    Status encode(std::string_view word, Scratch& scratch, std::span<const Symbol>& out) const;

    TokenId find(std::string_view piece) const; // as the file spells it; -1: absent
    const Pieces& vocabulary() const noexcept { return m_ids; }

protected:
    std::array<TokenId, 256> byteTokens() const; // ids of "<0xNN>", -1: absent

    Pieces m_ids; // as the file spells them

private:
    // Leaves the tokens in scratch.word.
    virtual Status tokenize(std::string_view word, Scratch& scratch) const = 0;
};

// Memory of a thread between words.
class WordModel::Scratch
{
public:
    Scratch();
    virtual ~Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    std::vector<Symbol> word;

private:
    friend class WordModel;
    static constexpr std::size_t kCachedBytes = 22;
    static constexpr std::size_t kCachedSymbols = 8;
    static constexpr std::size_t kEntries = std::size_t{1} << 15;
    struct Entry {
        std::uint8_t bytes = 0; // 0: free
        std::uint8_t count = 0;
        std::array<char, kCachedBytes> text{};
        std::array<Symbol, kCachedSymbols> symbols{};
    };

    std::vector<Entry> m_cache; // one place per hash: the newest word has it
};

} // namespace mr
