// UnigramModel: the "model" of a Unigram tokenizer.json: cuts a word into the pieces with the
// highest sum of scores.
//
// A character without a piece of its own may also be an unknown one, which costs more than any
// piece; unknown ones side by side are one token, or the bytes of which the vocabulary has tokens.
// Sums are in double precision from the start of the word and the first of equal sums stays, so
// ties come out as upstream.
//
// Source   Kudo, Subword Regularization (2018); the order of steps is that of the tokenizers
//          package, 0.23.
// Threads  Read-only after load() and hide().
// Errors   load(): InvalidArgument names the field. encode(): InvalidArgument, a character that no
//          piece covers where there is no unknown token.

#pragma once

#include "core/tokenizer/prefix_tree.h"
#include "core/tokenizer/subword_model.h"

namespace mr {

class UnigramModel final : public WordModel
{
public:
    Status load(const JsonNode& node);

    std::string_view kind() const noexcept override { return "unigram"; }
    // The best path takes 16 bytes for each byte of a word.
    std::size_t maxWordBytes() const noexcept override { return std::size_t{64} << 20; }
    std::unique_ptr<WordModel::Scratch> makeScratch() const override;
    void hide(std::string_view piece) override { m_tree.erase(piece); }

private:
    // The last token of the best path to a position.
    struct Best {
        double score = 0;
        std::uint32_t begin = kNowhere;
        TokenId id = -1;
    };
    struct Paths;
    static constexpr std::uint32_t kNowhere = UINT32_MAX;

    Status loadVocabulary(const JsonNode& node);
    Status loadUnknown(const JsonNode& node);
    Status tokenize(std::string_view word, WordModel::Scratch& scratch) const override;
    Status findPaths(std::string_view word, std::vector<Best>& best) const;
    void readBack(
        std::string_view word, const std::vector<Best>& best, std::vector<Symbol>& out) const;
    void putUnknown(std::string_view text, std::vector<Symbol>& out) const;

    PrefixTree m_tree;
    std::vector<double> m_scores; // by id
    double m_unknownScore = 0;
    TokenId m_unknown = -1;
    bool m_byteFallback = false;
    std::array<TokenId, 256> m_byteIds{};
};

} // namespace mr
