// What a SentencePiece model file says about itself, read by our own small protobuf walker before
// libsentencepiece sees the bytes.
//
// Two reasons. The library trusts its input: a damaged normalisation trie is followed out of
// bounds, a piece with a NUL throws, a score that is not a number breaks the search. And the
// settings decide where a text may be cut without changing its ids.
//
// Source   The message layout is sentencepiece_model.proto of SentencePiece 0.1.97.
// Threads  A value.
// Errors   InvalidArgument names what is wrong; the caller puts the file name in front.

#pragma once

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
    std::vector<Piece> vocabulary; // of a Unigram model that isForParts(); else empty
    bool isBpe = false;
    bool isUnigram = true; // where a file says nothing
    bool byteFallback = false;
    bool suffixWhitespace = false;
    bool addDummyPrefix = true;
    bool removeExtraWhitespaces = true;
    bool hasCharsmap = false;          // a normalisation other than identity
    std::vector<std::uint64_t> joints; // characters side by side in some piece, ascending

    // Whether the normaliser looks at single characters and at spaces only, and what is behind it
    // at the pieces.
    bool isForParts() const noexcept
    {
        return (isBpe || isUnigram) && !hasCharsmap && !suffixWhitespace;
    }
    // Whether parts may then be encoded by themselves: a BPE merge needs its result to be a piece.
    // Unigram models add up scores in single precision from the start of the text, so their ties
    // depend on everything before (SpmUnigram).
    bool mayBeCut() const noexcept { return isBpe && isForParts(); }

    // The first place from `from` on where encode(text) = encode(text up to there) + the rest by
    // itself, or npos: no piece holds the characters on both sides. The rest is encoded without
    // dummy prefix; but where spaces are removed and it begins with one, the prefix stands for that
    // space (isPrefixOfRest). Precondition: isForParts(), from > 0.
    std::size_t cutBehind(std::string_view text, std::size_t from) const noexcept;
    bool isPrefixOfRest(std::string_view rest) const noexcept
    {
        return removeExtraWhitespaces && rest.starts_with(' ');
    }
};

Result<SpmModel> readSpmModel(std::string_view bytes);

// The same model with add_dummy_prefix = false (and without its self test, which assumes the
// prefix). Precondition: readSpmModel(bytes) is ok.
std::string withoutDummyPrefix(std::string_view bytes);

} // namespace mr
