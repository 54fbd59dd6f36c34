// A file read from front to back through one buffer, counting lines. Skips a UTF-8 byte order mark.
// If its first megabyte has carriage returns and no line feed, carriage returns end its lines.
//
// Threads  Confined to its owner.
// Errors   Io is kept and reported by status(); reading then ends as if the file did.

#pragma once

#include "core/base/file.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

class ByteSource
{
public:
    static constexpr int kEnd = -1;
    // A record longer than this is a broken file, not a record.
    static constexpr std::size_t kMaxRecordBytes = std::size_t{256} << 20;

    static Result<ByteSource> open(const std::filesystem::path& path)
    {
        MR_ASSIGN(File file, File::openRead(path));
        MR_ASSIGN(std::uint64_t bytes, file.bytes());
        ByteSource source(std::move(file), bytes);
        source.skipMark();
        source.findLineEnd();
        return source;
    }

    const std::filesystem::path& path() const noexcept { return m_file.path(); }
    const Status& status() const noexcept { return m_status; }
    std::int64_t line() const noexcept { return m_line; } // line of the next byte, from 1
    char lineEnd() const noexcept { return m_lineEnd; }
    std::uint64_t fileBytes() const noexcept { return m_fileBytes; }

    // The next byte without taking it, or kEnd.
    int peek()
    {
        if (m_at == m_filled && !fill())
            return kEnd;
        return static_cast<unsigned char>(m_buffer[m_at]);
    }

    int take()
    {
        const int byte = peek();
        if (byte != kEnd) {
            ++m_at;
            m_line += byte == m_lineEnd ? 1 : 0;
        }
        return byte;
    }

    // The next line without its end ("\n", "\r\n" or "\r") into `out`. False at the end of the
    // file, or with a line above kMaxRecordBytes, which leaves tooLong() true.
    bool takeLine(std::string& out)
    {
        out.clear();
        if (peek() == kEnd)
            return false;
        while (peek() != kEnd) {
            const char* begin = m_buffer.data() + m_at;
            const std::size_t left = m_filled - m_at;
            const void* end = std::memchr(begin, m_lineEnd, left);
            const std::size_t count =
                end != nullptr ? static_cast<std::size_t>(static_cast<const char*>(end) - begin)
                               : left;
            m_tooLong = out.size() + count > kMaxRecordBytes;
            if (m_tooLong)
                return false;
            out.append(begin, count);
            m_at += count;
            if (end != nullptr) {
                take();
                break;
            }
        }
        if (out.ends_with('\r'))
            out.pop_back();
        return m_status.ok();
    }
    bool tooLong() const noexcept { return m_tooLong; }

private:
    ByteSource(File file, std::uint64_t bytes)
        : m_file(std::move(file))
        , m_fileBytes(bytes)
        , m_buffer(static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes, 1, kBufferBytes)))
    {
    }

    void skipMark()
    {
        if (peek() == 0xEF && m_filled >= 3 && std::memcmp(m_buffer.data(), "\xEF\xBB\xBF", 3) == 0)
            m_at = 3;
    }

    void findLineEnd()
    {
        const std::string_view beginning(m_buffer.data(), m_filled);
        const bool returns = beginning.find('\r') != std::string_view::npos;
        m_lineEnd = returns && beginning.find('\n') == std::string_view::npos ? '\r' : '\n';
    }

    bool fill()
    {
        if (m_offset >= m_fileBytes || !m_status.ok())
            return false;
        const std::uint64_t left = m_fileBytes - m_offset;
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, m_buffer.size()));
        m_status =
            m_file.readAt(m_offset, std::as_writable_bytes(std::span(m_buffer.data(), count)));
        m_at = 0;
        m_filled = m_status.ok() ? count : 0;
        m_offset += count;
        return m_status.ok();
    }

    static constexpr std::uint64_t kBufferBytes = std::uint64_t{1} << 20;

    File m_file;
    std::uint64_t m_fileBytes = 0;
    std::uint64_t m_offset = 0; // in the file, of the byte after the buffer
    std::vector<char> m_buffer;
    std::size_t m_at = 0;
    std::size_t m_filled = 0;
    std::int64_t m_line = 1;
    char m_lineEnd = '\n';
    bool m_tooLong = false;
    Status m_status;
};

} // namespace mr
