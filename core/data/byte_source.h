// A file read from front to back through one buffer, counting lines. Skips a UTF-8 byte order mark.
// If its first megabyte has carriage returns and no line feed, carriage returns end its lines.
// Bytes and lines are those of the contents where the file is compressed.
//
// Threads  Confined to its owner.
// Errors   As DataFile's: kept and reported by status(); reading then ends as if the file did.

#pragma once

#include "core/data/data_file.h"

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
        MR_ASSIGN(DataFile file, DataFile::open(path));
        ByteSource source(std::move(file));
        source.skipMark();
        source.findLineEnd();
        return source;
    }

    const std::filesystem::path& path() const noexcept { return m_file.path(); }
    const Status& status() const noexcept { return m_status; }
    std::int64_t line() const noexcept { return m_line; } // line of the next byte, from 1
    char lineEnd() const noexcept { return m_lineEnd; }
    std::uint64_t bytesOnDisk() const noexcept { return m_file.bytesOnDisk(); }

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
    explicit ByteSource(DataFile file)
        : m_file(std::move(file))
        , m_buffer(bufferBytes(m_file))
    {
    }

    static std::size_t bufferBytes(const DataFile& file)
    {
        constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
        const bool isPlain = file.compression() == Compression::None;
        return static_cast<std::size_t>(
            isPlain ? std::clamp<std::uint64_t>(file.bytesOnDisk(), 1, kMost) : kMost);
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
        if (m_ended || !m_status.ok())
            return false;
        Result<std::size_t> count = m_file.read(std::span(m_buffer));
        m_status = count.status();
        m_at = 0;
        m_filled = count.ok() ? count.value() : 0;
        m_ended = m_filled < m_buffer.size();
        return m_filled > 0;
    }

    DataFile m_file;
    bool m_ended = false; // nothing comes behind the buffer
    std::vector<char> m_buffer;
    std::size_t m_at = 0;
    std::size_t m_filled = 0;
    std::int64_t m_line = 1;
    char m_lineEnd = '\n';
    bool m_tooLong = false;
    Status m_status;
};

} // namespace mr
