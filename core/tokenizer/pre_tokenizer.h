// PreTokenizer: the "pre_tokenizer" of tokenizer.json: cuts a text into the words in which tokens
// are looked for.
//
// Stages work piece by piece and hand each on at once, so nothing is kept per word. ByteLevel hands
// its words on as raw bytes, not spelled in the 256 letters that stand for bytes in the file; only
// for stages behind it are they spelled, and read again at the end.
//
// Threads  Read-only after read(); a Buffer belongs to one thread.
// Errors   read(): InvalidArgument names the field. split(): errors of an expression or the sink.

#pragma once

#include "core/tokenizer/json_node.h"
#include "core/tokenizer/text_normalizer.h"
#include "core/tokenizer/text_regex.h"

#include <array>
#include <optional>

namespace mr {

struct TextPiece {
    std::string_view text;
    Origin origin;
};

// Takes the words in order.
class WordSink
{
public:
    virtual Status word(const TextPiece& piece) = 0;

protected:
    ~WordSink() = default;
};

class PreTokenizer
{
public:
    class Buffer;

    static Result<PreTokenizer> read(const JsonNode& node);

    bool byteLevel() const noexcept { return m_byteLevel; }
    // `piece` is UTF-8. `tracked`: the origins of words are wanted.
    Status split(const TextPiece& piece, bool tracked, Buffer& buffer, WordSink& sink) const;
    // The words of the front of a text that nothing behind `piece` can change. Where there is no
    // stage that cuts, all of it is the one word. Only where isForStreams().
    Status splitFront(const TextPiece& piece, bool tracked, Buffer& buffer, WordSink& sink) const;
    // Whether a text may be cut in front of any word, and its rest be split by itself as a piece
    // that does not begin at 0.
    bool isForStreams() const noexcept;
    bool changesText() const noexcept; // before it cuts
    // The prefix of every piece when it is cut; put in front where it is missing. Where there is
    // one, streams are cut before words that begin with it.
    std::string_view prefixOfEach() const noexcept;

private:
    enum class Behaviour { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };
    enum class Prefix { Never, First, Always };
    enum class Letters { None, Spell, Read };
    // In this order: spaces become `replacement`, the prefix is put in front, the text is cut.
    struct Stage {
        Letters letters = Letters::None; // bytes become letters or letters bytes, and that is all
        std::string replacement;         // empty: spaces stay
        std::string prefixText;
        Prefix prefix = Prefix::Never;
        std::optional<TextRegex> regex; // none: not cut
        Behaviour behaviour = Behaviour::Isolated;
        bool invert = false;
    };
    // Joins matches with the text between them as the behaviour says.
    struct Pending {
        TextRange range;
        bool held = false;
        bool match = false;       // the piece held is a match that nothing has joined
        bool lastMatched = false; // the last range was a match
    };
    struct Job;

    Status readInto(const JsonNode& node, int depth);
    Status addSplit(const JsonNode& node, const std::string& pattern, Behaviour behaviour);
    Status readSplit(const JsonNode& node);
    Status readMetaspace(const JsonNode& node);
    Status readByteLevel(const JsonNode& node);
    Status readSimple(const JsonNode& node, const std::string& type);
    static Result<Behaviour> readBehaviour(const JsonNode& node, Behaviour otherwise);

    Status run(std::size_t stage, TextPiece piece, Job& job) const;
    static TextPiece change(
        const Stage& stage, const TextPiece& piece, bool tracked, ChangedText& to);
    TextPiece rewrite(Letters letters, const TextPiece& piece, bool tracked, ChangedText& to) const;
    Status cut(std::size_t stage, const TextPiece& piece, Job& job) const;
    Status take(std::size_t stage, const TextPiece& piece, TextRange range, bool match,
        Pending& pending, Job& job) const;
    Status flush(std::size_t stage, const TextPiece& piece, Pending& pending, Job& job) const;

    std::vector<Stage> m_stages;
    bool m_byteLevel = false;
    bool m_spelled = false;                    // there are stages behind ByteLevel
    std::array<std::int32_t, 256> m_letters{}; // by byte
    std::vector<char> m_byteOf;                // by letter
};

class PreTokenizer::Buffer
{
public:
    explicit Buffer(const PreTokenizer& owner);

private:
    friend class PreTokenizer;
    struct OfStage {
        std::optional<RegexMatcher> matcher;
        ChangedText text;
    };
    std::vector<OfStage> m_stages;
};

} // namespace mr
