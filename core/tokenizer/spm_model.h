// Settings and pieces of a SentencePiece model file, read by our own small protobuf walker before
// libsentencepiece sees the bytes.
//
// Two reasons. The library trusts its input: a damaged normalisation trie is followed out of
// bounds, a piece with a NUL throws, a score that is not a number breaks the search. And the
// settings decide where a text may be cut without changing its ids.
//
// Source   The message layout is sentencepiece_model.proto of SentencePiece 0.1.97.
// Threads  A value.
// Errors   InvalidArgument names the fault; the caller puts the file name in front.

#pragma once

#include "core/tokenizer/spm_normalizer.h"

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct SpmModel {
    enum class Type : std::uint8_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };
    struct Piece {
        std::string text;
        float score = 0;
        Type type = Type::Normal;
    };

    std::int64_t pieces = 0;
    std::vector<Piece> vocabulary; // as asked for, or of a Unigram model that isForParts()
    bool isBpe = false;
    bool isUnigram = true; // also where the file names no type
    bool byteFallback = false;
    bool suffixWhitespace = false;
    bool addDummyPrefix = true;
    bool removeExtraWhitespaces = true;
    SpmNormalizer normalizer;
    bool normalizes = false;           // by a table of its own
    bool isNormalizerKnown = true;     // false: only the library can follow its table
    std::vector<std::uint64_t> joints; // characters side by side in some piece, ascending

    // Whether there may be places that neither the normaliser nor the pieces look across.
    bool isForParts() const noexcept
    {
        return (isBpe || isUnigram) && isNormalizerKnown && !suffixWhitespace;
    }
    // Whether parts may then be encoded by themselves: a BPE merge needs its result to be a piece.
    // Unigram models add up scores in single precision from the start of the text, so their ties
    // depend on everything before (SpmUnigram).
    bool mayBeCut() const noexcept { return isBpe && isForParts(); }

    // The first place from `from` on where encode(text) = encode(text up to there) + the rest by
    // itself, or npos: the text is normalised apart there, and no piece holds the characters that
    // the two sides become. The rest is encoded without
    // dummy prefix; but where spaces are removed and it begins with one, the prefix stands for that
    // space (isPrefixOfRest). Precondition: isForParts(), from > 0.
    std::size_t cutBehind(std::string_view text, std::size_t from) const noexcept;
    bool isPrefixOfRest(std::string_view rest) const noexcept
    {
        return removeExtraWhitespaces && !rest.empty() &&
               normalizer.front(rest).text.starts_with(' ');
    }

private:
    // Whether some piece holds these characters side by side.
    bool areJoined(std::int32_t left, std::int32_t right) const noexcept;
};

// `allPieces`: `vocabulary` has them of any model.
Result<SpmModel> readSpmModel(std::string_view bytes, bool allPieces = false);

// The model's bytes with add_dummy_prefix = false (and without its self test, which assumes the
// prefix). Precondition: readSpmModel(bytes) is ok.
std::string withoutDummyPrefix(std::string_view bytes);

} // namespace mr
