// Numbers of a few bits each: packed groups, runs (RLE / bit-packed hybrid) and differences
// (DELTA_BINARY_PACKED).
//
// A decoder gives one number at a time and stores none, so a page that claims a billion costs no
// memory.
//
// Threads  Confined to their owner, which keeps the bytes alive.
// Errors   next() is false: the bytes end early or make no sense.
// Source   github.com/apache/parquet-format, Encodings.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mr {

// `width` (at most 64) bits from bit `at`, lowest first; all of them lie in `bytes`.
std::uint64_t bitsAt(std::string_view bytes, std::uint64_t at, unsigned width) noexcept;

// Takes an unsigned LEB128 number from the front of `bytes`.
bool takeVarint(std::string_view& bytes, std::uint64_t& out) noexcept;

class HybridRuns
{
public:
    HybridRuns() = default;
    // `width` is at most 32.
    HybridRuns(std::string_view bytes, unsigned width)
        : m_bytes(bytes)
        , m_width(width)
    {
    }

    bool next(std::uint32_t& out) noexcept;

private:
    bool begin() noexcept;

    std::string_view m_bytes;
    unsigned m_width = 0;
    std::uint64_t m_left = 0; // numbers of the run
    bool m_isPacked = false;
    std::uint32_t m_value = 0;
    std::string_view m_group;
    std::uint64_t m_bit = 0;
};

class DeltaRuns
{
public:
    // False: the head makes no sense.
    bool open(std::string_view bytes) noexcept;

    std::uint64_t count() const noexcept { return m_count; }
    bool next(std::int64_t& out) noexcept;
    // The bytes behind all numbers, none of which may have been taken.
    bool skipAll(std::string_view& behind) const noexcept;

private:
    bool beginBlock() noexcept;
    bool beginPart() noexcept;

    std::string_view m_bytes;
    std::uint64_t m_count = 0; // of all numbers
    std::uint64_t m_given = 0;
    std::uint64_t m_perPart = 0;
    std::uint64_t m_parts = 0; // of a block
    std::uint64_t m_value = 0;
    std::uint64_t m_least = 0; // difference
    std::string_view m_widths; // of the parts that follow in this block
    std::string_view m_part;
    unsigned m_width = 0;
    std::uint64_t m_inPart = 0; // numbers left
    std::uint64_t m_bit = 0;
};

} // namespace mr
