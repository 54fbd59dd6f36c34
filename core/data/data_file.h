// DataFile: the bytes of a dataset file from front to back; one that is gzip or zstd is unpacked on
// the way, so it may be larger than memory, and so may its contents.
//
// The first bytes say that a file is compressed, whatever it is called.
//
// Threads  Confined to its owner.
// Errors   Io from the disk. InvalidArgument names the file: compressed data that is cut off,
//          damaged or followed by other bytes.

#pragma once

#include "core/base/file.h"
#include "core/data/unpacker.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr {

class DataFile
{
public:
    static Result<DataFile> open(const std::filesystem::path& path);

    const std::filesystem::path& path() const noexcept { return m_file.path(); }
    Compression compression() const noexcept { return m_compression; }
    std::uint64_t bytesOnDisk() const noexcept { return m_fileBytes; }

    // The next bytes: `out` is filled unless the data ends within it. Returns their count.
    Result<std::size_t> read(std::span<char> out);

private:
    DataFile(File file, std::uint64_t bytes)
        : m_file(std::move(file))
        , m_fileBytes(bytes)
    {
    }

    Status lookAtBeginning();
    Result<std::size_t> readFile(std::span<char> out);
    Status refill();
    Status failed(const Status& status) const;

    File m_file;
    std::uint64_t m_fileBytes = 0;
    std::uint64_t m_offset = 0; // in the file, of the next byte to be read
    Compression m_compression = Compression::None;
    std::unique_ptr<Unpacker> m_unpacker;
    std::vector<char> m_input; // compressed bytes: [m_at, m_filled) are not taken
    std::size_t m_at = 0;
    std::size_t m_filled = 0;
    bool m_within = false;    // a member or frame has begun and not ended
    bool m_holdsBack = false; // the unpacker may have more for the bytes that it took
    std::uint64_t m_made = 0;
};

// The extension that tells the format, in lower case: ".csv" of "rows.CSV.gz".
std::string formatExtension(const std::filesystem::path& path);

} // namespace mr
