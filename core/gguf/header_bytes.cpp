#include "core/gguf/header_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace mr {

namespace {

// A header has some ten million bytes for the largest vocabularies; the limit is that of
// safetensors.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
constexpr std::uint64_t kBufferBytes = 1U << 20;

} // namespace

HeaderBytes::HeaderBytes(const File& file, std::uint64_t fileBytes)
    : m_file(file)
    , m_fileBytes(fileBytes)
{
}

Status HeaderBytes::error(std::uint64_t offset, const std::string& what) const
{
    return Status::error(ErrorKind::DataCorrupt,
        fmt::format("{}: byte {}: {}", m_file.path().string(), offset, what));
}

Status HeaderBytes::checkRoom(std::uint64_t offset, std::uint64_t count, std::uint64_t bytesEach,
    const std::string& what) const
{
    const std::uint64_t end = std::min(m_fileBytes, kMostHeaderBytes);
    const std::uint64_t left = end - std::min(end, m_position);
    if (count <= left / bytesEach)
        return {};
    if (m_fileBytes > kMostHeaderBytes)
        return error(offset, fmt::format("{} do not fit into a header of {} bytes, the most that "
                                         "is read",
                                 what, kMostHeaderBytes));
    return error(offset,
        fmt::format("{}, but the file ends after {} more bytes; fetch it again", what, left));
}

Status HeaderBytes::read(std::span<std::byte> out)
{
    for (std::size_t done = 0; done < out.size();) {
        const std::uint64_t within = m_position - m_bufferBegin;
        if (within >= m_buffer.size()) {
            MR_TRY(checkRoom(m_position, out.size() - done, 1,
                fmt::format("{} bytes are missing", out.size() - done)));
            m_bufferBegin = m_position;
            m_buffer.resize(std::min(kBufferBytes, m_fileBytes - m_position));
            MR_TRY(m_file.readAt(m_position, m_buffer));
            continue;
        }
        const std::size_t count =
            std::min<std::size_t>(out.size() - done, m_buffer.size() - within);
        std::memcpy(out.data() + done, m_buffer.data() + within, count);
        done += count;
        m_position += count;
    }
    return {};
}

Result<std::string> HeaderBytes::text()
{
    const std::uint64_t offset = m_position;
    MR_ASSIGN(const std::uint64_t bytes, number<std::uint64_t>());
    MR_TRY(checkRoom(offset, bytes, 1, fmt::format("a text of {} bytes", bytes)));
    std::string text(bytes, '\0');
    MR_TRY(read(std::as_writable_bytes(std::span(text))));
    return text;
}

} // namespace mr
