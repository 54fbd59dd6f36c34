// Text of a rendered chat template that remembers where each of its characters came from.
//
// Content of a message must never become a control token, so a renderer cannot hand out plain
// strings: every piece says whether the template wrote it or the data did, and whether it is
// trained. Joining, cutting and mapping keep that per character.
//
// Threads  A value; copies may be read on any thread.
// Errors   none.
// Units    Offsets are bytes; a character is a code point, as in Python.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr::tpl {

inline bool isDigit(char c) noexcept
{
    return c >= '0' && c <= '9';
}

enum TextFlag : std::uint8_t {
    kFromData = 1, // content: tokenised as plain text
    kTrained = 2,  // inside {% generation %}
};

class Text
{
public:
    struct Run {
        std::size_t end = 0; // byte offset, not included
        std::uint8_t flags = 0;
    };

    Text() = default;
    explicit Text(std::string_view bytes, std::uint8_t flags = 0) { append(bytes, flags); }

    const std::string& bytes() const noexcept { return m_bytes; }
    const std::vector<Run>& runs() const noexcept { return m_runs; }
    std::size_t byteCount() const noexcept { return m_bytes.size(); }
    bool empty() const noexcept { return m_bytes.empty(); }
    // The flags of any of its characters, together.
    std::uint8_t anyFlags() const noexcept;

    void append(std::string_view bytes, std::uint8_t flags);
    void append(const Text& other, std::uint8_t added = 0);
    // [begin, end) of `other`.
    void append(const Text& other, std::size_t begin, std::size_t end, std::uint8_t added = 0);
    Text slice(std::size_t begin, std::size_t end) const;

    // Byte offsets of the characters, and the byte count behind the last.
    std::vector<std::size_t> characters() const;
    std::size_t characterCount() const noexcept;

private:
    std::string m_bytes;
    std::vector<Run> m_runs; // ascending; the last ends where m_bytes does
};

// The code point at `at`, which moves behind it. Bytes that are not UTF-8 stand for themselves.
char32_t takeCharacter(std::string_view bytes, std::size_t& at) noexcept;

// White space as Python's str.strip() sees it.
bool isSpace(char32_t c) noexcept;
// The part of `bytes` without white space (or without characters of `set`) at the asked ends.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
};
Range stripped(std::string_view bytes, bool left, bool right, const std::string* set = nullptr);

} // namespace mr::tpl
