// HeaderBytes: the beginning of a GGUF file, read from front to back and never past its end.
//
// Threads   One thread.
// Lifetime  The file outlives it.
// Errors    DataCorrupt with file and byte offset; Io.

#pragma once

#include "core/base/file.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace mr {

class HeaderBytes
{
public:
    HeaderBytes(const File& file, std::uint64_t fileBytes);

    std::uint64_t fileBytes() const noexcept { return m_fileBytes; }
    std::uint64_t position() const noexcept { return m_position; }

    // "model.gguf: byte 24: ..."
    Status error(std::uint64_t offset, const std::string& what) const;

    // For `count` things that take at least `bytesEach`, named by the field at `offset`: an error
    // if the file is too short for them.
    Status checkRoom(std::uint64_t offset, std::uint64_t count, std::uint64_t bytesEach,
        const std::string& what) const;

    Status read(std::span<std::byte> out);

    template <typename T>
    Result<T> number()
    {
        static_assert(std::is_arithmetic_v<T>);
        T value{};
        MR_TRY(read(std::as_writable_bytes(std::span(&value, 1))));
        return value;
    }

    // Its length, then so many bytes.
    Result<std::string> text();

private:
    const File& m_file;
    const std::uint64_t m_fileBytes;
    std::uint64_t m_position = 0;
    std::vector<std::byte> m_buffer;
    std::uint64_t m_bufferBegin = 0; // in the file
};

} // namespace mr
