// AddedTokens: the tokens that are cut out of a text before anything else looks at it.
//
// Control tokens ("<|im_end|>") only where the text says they may stand; all others everywhere.
// The leftmost match wins, and of those the longest, as in the format's own implementation. A
// control token in a person's text is passed over as a whole.
//
// Threads  Built once, then read from any number of threads.
// Units    Bytes.

#pragma once

#include "core/tokenizer/tokenizer.h"

#include <array>
#include <unordered_map>

namespace mr {

struct AddedToken {
    TokenId id = -1;
    std::string text;
    bool special = true;
    bool normalized = false; // looked for after normalisation
    bool lstrip = false;     // takes the white space before it along
    bool rstrip = false;
    bool singleWord = false; // not between letters
};

// Where the bytes of a changed text come from: ends[i] is the source offset behind byte i.
struct Origin {
    const std::size_t* ends = nullptr; // null: the text is unchanged
    std::size_t base = 0;

    std::size_t at(std::size_t offset) const noexcept
    {
        if (ends == nullptr)
            return base + offset;
        return offset == 0 ? base : ends[offset - 1];
    }
};

// The ranges of the joined text in which control tokens are looked for, in order.
class ControlRanges
{
public:
    void add(std::size_t begin, std::size_t end);
    bool empty() const noexcept { return m_ranges.empty(); }
    bool cover(std::size_t begin, std::size_t end) const noexcept;
    bool touch(std::size_t begin, std::size_t end) const noexcept;

private:
    struct Range {
        std::size_t begin = 0;
        std::size_t end = 0;
    };
    // The first range that ends behind `at`.
    std::vector<Range>::const_iterator after(std::size_t at) const noexcept;

    std::vector<Range> m_ranges;
};

// Parts as one text.
struct JoinedParts {
    explicit JoinedParts(std::span<const TextPart> parts);

    std::string text;
    ControlRanges controls;
};

class AddedTokens
{
public:
    struct Match {
        std::size_t begin = 0; // half-open, white space that goes along included
        std::size_t end = 0;
        std::size_t next = 0; // where the search goes on: behind the token's own characters
        const AddedToken* token = nullptr;
    };

    // `spelling`: the text to look for; a token whose spelling is there already is ignored.
    void add(AddedToken token, std::string_view spelling);
    bool empty() const noexcept { return m_tokens.empty(); }
    // Whether text[0, at) and text[at, ...) may be searched apart, with any text behind `text`: no
    // spelling reaches over `at`, or could with more text, and no token that looks at its
    // neighbours touches it.
    bool areApartAt(std::string_view text, std::size_t at) const noexcept;
    // The match behind `last` (Match() at the beginning), or false. As upstream, white space that
    // went along with the last one may itself be a token, and then comes twice.
    bool find(std::string_view text, const Match& last, const ControlRanges& controls,
        const Origin& origin, Match& out) const;

private:
    struct Candidate {
        std::size_t end = 0;
        const AddedToken* token = nullptr;
    };
    struct Candidates {
        Candidate longest; // token null: none
        Candidate allowed; // the longest that may stand here
    };

    Candidates candidatesAt(std::string_view text, std::size_t begin, const ControlRanges& controls,
        const Origin& origin) const;
    static bool standsAlone(std::string_view text, std::size_t begin, std::size_t end);
    static void strip(std::string_view text, std::size_t from, Match& match);

    std::vector<AddedToken> m_tokens;
    std::size_t m_longest = 0;                                // spelling
    bool m_haveNeighbours = false;                            // lstrip, rstrip or singleWord
    std::array<bool, 256> m_begins{};                         // some token begins with this byte
    std::unordered_map<std::uint64_t, std::uint32_t> m_steps; // node * 256 + byte -> node
    std::vector<std::int32_t> m_tokenOf{-1};                  // by node
};

} // namespace mr
