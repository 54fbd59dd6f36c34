// TextNormalizer: the "normalizer" of tokenizer.json, with the way back to the text it changed.
//
// Unicode forms work on stretches that end where a character begins that cannot join the one before
// it, so the way back is known to a few bytes and plain text is copied.
//
// Source   Unicode TR 15; the tables are utf8proc's.
// Threads  Read-only after read(); a Buffer belongs to one thread.
// Errors   read(): InvalidArgument names the field. apply(): errors of an expression, or the text
//          grows without measure.

#pragma once

#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/json_node.h"
#include "core/tokenizer/precompiled_charsmap.h"
#include "core/tokenizer/replacement.h"

#include <bitset>
#include <optional>
#include <variant>

namespace mr {

// A text that was changed, and where its bytes come from (empty where nobody asks).
struct ChangedText {
    std::string text;
    std::vector<std::size_t> ends;

    Origin origin(const Origin& before) const
    {
        return {ends.empty() ? before.ends : ends.data(), before.base};
    }
};

// Writes a ChangedText from another text.
class TextChanger
{
public:
    // `tracked`: ends are wanted.
    TextChanger(const Origin& from, bool tracked, ChangedText& out);

    void copy(std::string_view text, std::size_t begin, std::size_t end);
    // `sourceEnd`: the offset behind the bytes that `text` replaces.
    void put(std::string_view text, std::size_t sourceEnd);
    std::size_t bytes() const noexcept { return m_out->text.size(); }

private:
    const Origin* m_from;
    bool m_tracked;
    ChangedText* m_out;
};

class TextNormalizer
{
public:
    class Buffer;

    static Result<TextNormalizer> read(const JsonNode& node);

    bool empty() const noexcept { return m_steps.empty(); }
    // Replaces `text` and `origin` by the changed text in `buffer`; UTF-8 in, UTF-8 out.
    // `goesOn`: `text` continues another one, so nothing is put in front of it.
    Status apply(std::string_view& text, Origin& origin, bool tracked, Buffer& buffer,
        bool goesOn = false) const;
    // Whether every step looks at no more than a character and those that join it, at a run of
    // spaces, or at the borders of the text.
    bool isForStreams() const noexcept;
    // Whether no step joins the characters on both sides of this place.
    bool beginsAnew(std::string_view text, std::size_t at, Buffer& buffer) const;
    // Whether no text from here on changes the result of the text before.
    bool isCertainBefore(std::string_view text, std::size_t at, Buffer& buffer) const;

private:
    struct Form {
        int options = 0;                  // utf8proc's
        std::bitset<0x10000> alone;       // stays itself where nothing follows it
        std::bitset<0x10000> independent; // joins nothing before it
    };
    struct Lowercase {
    };
    struct Prepend {
        std::string text;
    };
    struct Strip {
        bool left = true;
        bool right = true;
    };
    struct StripAccents {
    };
    struct Precompiled {
        explicit Precompiled(PrecompiledCharsmap charsmap);
        // Whether a cluster begins here, after any text in front of the character before.
        static bool isBorder(std::string_view text, std::size_t at);

        PrecompiledCharsmap map;
        std::bitset<0x80> changed;
    };
    struct Nmt {
    };
    using Step = std::variant<std::unique_ptr<Form>, Lowercase, Replacement, Prepend, Strip,
        StripAccents, Precompiled, Nmt>;

    Status readInto(const JsonNode& node, int depth);
    Status readPrecompiled(const JsonNode& node);
    static std::unique_ptr<Form> makeForm(int options);
    static bool independent(const Form& form, std::int32_t code, std::vector<std::int32_t>& codes);
    static void putStretch(std::string_view text, std::size_t begin, std::size_t end,
        const Form& form, TextChanger& out, Buffer& buffer);

    Status run(const std::unique_ptr<Form>& form, std::string_view text, TextChanger& out,
        Buffer& buffer) const;
    Status run(
        const Lowercase& step, std::string_view text, TextChanger& out, Buffer& buffer) const;
    Status run(
        const Replacement& step, std::string_view text, TextChanger& out, Buffer& buffer) const;
    Status run(const Prepend& step, std::string_view text, TextChanger& out, Buffer& buffer) const;
    Status run(const Strip& step, std::string_view text, TextChanger& out, Buffer& buffer) const;
    Status run(
        const StripAccents& step, std::string_view text, TextChanger& out, Buffer& buffer) const;
    Status run(
        const Precompiled& step, std::string_view text, TextChanger& out, Buffer& buffer) const;
    Status run(const Nmt& step, std::string_view text, TextChanger& out, Buffer& buffer) const;

    std::vector<Step> m_steps;
};

class TextNormalizer::Buffer
{
public:
    explicit Buffer(const TextNormalizer& normalizer);

private:
    friend class TextNormalizer;
    ChangedText m_texts[2];                              // a step reads one and writes the other
    std::vector<std::optional<RegexMatcher>> m_matchers; // by step
    RegexMatcher* m_matcher = nullptr;                   // matcher of the step that runs
    std::size_t m_mostBytes = 0;                         // limit of the text that is being changed
    std::vector<std::int32_t> m_codes;
    bool m_goesOn = false; // the text that is being changed continues another one
};

} // namespace mr
