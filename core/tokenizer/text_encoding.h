// TextEncoding: a text on its way through the stages of a tokenizer.json: added tokens are cut out,
// the text between them is normalised and cut into words, and the words become ids.
//
// A stream lets its last words wait until nothing behind them can change them: PCRE2 says of every
// match whether it looked at the end of the text.
//
// Threads    EncodingStages are read-only once they are filled; everything else belongs to one
//            thread.
// Ownership  Borrows stages, scratch and ids.
// Errors     The errors of the stages.

#pragma once

#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/pre_tokenizer.h"
#include "core/tokenizer/subword_model.h"
#include "core/tokenizer/text_normalizer.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace mr {

struct EncodingStages {
    TextNormalizer normalizer;
    PreTokenizer preTokenizer;
    std::unique_ptr<const WordModel> model;
    AddedTokens rawTokens;        // looked for in the text as it is
    AddedTokens normalizedTokens; // and after normalisation
};

// Buffers of one thread that encodes.
struct EncodeScratch {
    explicit EncodeScratch(const EncodingStages& stages)
        : normalized(stages.normalizer)
        , pieces(stages.preTokenizer)
        , words(stages.model->makeScratch())
    {
    }

    TextNormalizer::Buffer normalized;
    PreTokenizer::Buffer pieces;
    std::unique_ptr<WordModel::Scratch> words;
};

// A place in front of a word, and the ids before it.
struct TextBorder {
    std::size_t at = 0; // in the text
    std::size_t ids = 0;
};

class TextEncoding final : public WordSink
{
public:
    // `ends` may be null: nobody asks.
    TextEncoding(const EncodingStages& stages, EncodeScratch& scratch,
        const ControlRanges& controls, std::vector<TokenId>& ids, std::vector<std::size_t>* ends);

    Status text(std::string_view text);
    // The front of a text, of which `text` follows `before` bytes: ids up to the border returned
    // are final, those behind it are not. A border at 0: none was found.
    Result<TextBorder> front(std::string_view text, std::size_t before);
    // The rest of a text.
    Status rest(std::string_view text, std::size_t before);
    Status word(const TextPiece& piece) override;

private:
    Status from(std::string_view text, std::size_t before);
    bool areApartAt(std::string_view text, std::size_t at) const;
    // The front of a text that nothing behind it changes.
    std::string_view certain(std::string_view text) const;
    Status section(const TextPiece& piece);
    Status validSection(TextPiece piece);
    void noteBorder(const TextPiece& piece, std::size_t at);
    // Ends never fall, though white space may belong to two tokens.
    void putEnd(std::size_t end)
    {
        m_lastEnd = std::max(m_lastEnd, end);
        m_ends->push_back(m_lastEnd);
    }
    // Cuts `tokens` out and hands the text between them to `between`.
    template <typename Between>
    Status cut(const AddedTokens& tokens, const TextPiece& piece, const Between& between);

    const EncodingStages& m_stages;
    EncodeScratch& m_scratch;
    const ControlRanges& m_controls;
    std::vector<TokenId>& m_ids;
    std::vector<std::size_t>* m_ends;
    std::size_t m_lastEnd = 0;

    // Used by a stream only:
    std::string_view m_text;  // the text so far
    std::size_t m_before = 0; // bytes of the text in front of it
    bool m_isStream = false;
    bool m_isFront = false;            // more comes behind m_text
    bool m_beginsSection = false;      // the next word is the first behind an added token
    std::vector<TextBorder> m_borders; // the last ones of m_text
};

// A stream through `stages`; null: they know no place where later text cannot change the text
// before it.
std::unique_ptr<TextStream> makeTextStream(const EncodingStages& stages);

} // namespace mr
