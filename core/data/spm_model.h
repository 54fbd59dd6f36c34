// What a SentencePiece model file says about itself, read by our own small protobuf walker before
// libsentencepiece sees the bytes.
//
// Two reasons. The library trusts its input: a damaged normalisation trie is followed out of
// bounds, a piece with a NUL throws, a score that is not a number breaks the search. And the
// settings decide whether a text may be cut at line ends without changing its ids.
//
// Source   The message layout is sentencepiece_model.proto of SentencePiece 0.1.97.
// Threads  A value.
// Errors   InvalidArgument names what is wrong; the caller puts the file name in front.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace mr {

struct SpmModel {
    std::int64_t pieces = 0;
    bool isBpe = false;
    bool byteFallback = false;
    bool suffixWhitespace = false;
    bool addDummyPrefix = true;
    bool removeExtraWhitespaces = true;
    bool hasCharsmap = false;       // a normalisation other than identity
    bool pieceSpansLineEnd = false; // some piece holds a line feed followed by something else

    // True where encode(a + b) = encode(a) + encode'(b) for every a that ends in a line feed and
    // every b that does not begin with one, encode' being the model without dummy prefix:
    // the normaliser looks at single characters only, and a BPE merge needs its result to be a
    // piece. Unigram models are excluded: they add up scores in single precision from the start of
    // the text, so their ties depend on everything before.
    bool linesAreIndependent() const noexcept
    {
        return isBpe && !removeExtraWhitespaces && !hasCharsmap && !suffixWhitespace &&
               !pieceSpansLineEnd;
    }
};

Result<SpmModel> readSpmModel(std::string_view bytes);

// The same model with add_dummy_prefix = false (and without its self test, which assumes the
// prefix). Precondition: readSpmModel(bytes) is ok.
std::string withoutDummyPrefix(std::string_view bytes);

} // namespace mr
