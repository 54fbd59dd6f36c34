// SpmUnigram: the search of a SentencePiece Unigram model for a text that comes in parts.
//
// The library needs its text whole, at some hundred bytes of memory for each of text, because
// it adds up scores in single precision from the front, so ties depend on everything before. Where
// no piece holds the characters on both sides of a place, every way to cut the text has a border
// there: the sum up to it is all that the rest needs to know.
//
// Source   The steps and their precision are those of unigram_model.cc and
//          sentencepiece_processor.cc of SentencePiece 0.1.97; the search is that of Kudo,
//          Subword Regularization (2018).
// Threads  Read-only after load(). A Part belongs to one thread.
// Units    Bytes.

#pragma once

#include "core/tokenizer/prefix_tree.h"
#include "core/tokenizer/spm_model.h"
#include "core/tokenizer/tokenizer.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

class SpmUnigram
{
public:
    // Where a run of text stands, part by part.
    struct Part {
        float score = 0;          // sum of the best way up to here
        bool endsUnknown = false; // the last id is of an unknown character
    };

    // `byteIds`: of the bytes, where unknown characters become those; `unknown`: else.
    void load(const SpmModel& model, const std::array<TokenId, 256>& byteIds, TokenId unknown);

    void encode(std::string_view normalized, Part& part, std::vector<TokenId>& out) const;

private:
    struct Best {
        float score = 0;
        std::int32_t begin = -1;
        TokenId id = -1;
    };
    struct Piece {
        float score = 0;
        bool isUnused = false;
        bool isOwn = false; // user defined: is taken wherever it stands
    };

    void findPaths(std::string_view text, std::vector<Best>& best) const;
    void put(std::string_view piece, TokenId id, Part& part, std::vector<TokenId>& out) const;

    PrefixTree m_tree;
    std::vector<Piece> m_pieces; // by id
    std::array<TokenId, 256> m_byteIds{};
    TokenId m_unknown = 0;
    float m_lowest = 0;
    float m_highest = 0;
    bool m_byteFallback = false;
};

} // namespace mr
