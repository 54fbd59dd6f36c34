// Image: the squashfs that follows this program in its own file, an AppImage of type 2.
//
// Threads  One.
// Errors   A sentence that names the file, or an empty text where there is none.
// Units    Bytes.

#pragma once

extern "C" {
#include <squashfuse.h>
}

#include <cstdint>
#include <filesystem>
#include <string>

namespace mr::appimage {

class Image
{
public:
    Image() = default;
    ~Image();
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

    // `file`: the AppImage. To be called once, before everything else.
    std::string open(const std::filesystem::path& file);

    // Begin of the image in the file, in bytes.
    std::uint64_t offset() const { return m_offset; }

    // Bytes of all files, unpacked.
    std::uint64_t unpackedBytes() const { return m_unpackedBytes; }

    // Names the content: two images of one id hold the same files. The packer writes it (image_id).
    const std::string& id() const { return m_id; }

    // Writes every file below `folder`, which exists and is empty.
    std::string unpack(const std::filesystem::path& folder);

private:
    std::string findOffset();
    std::string readFacts();
    std::string readInode(const sqfs_dir_entry& entry, sqfs_inode& inode);
    std::string unpackEntry(const std::filesystem::path& path, const sqfs_dir_entry& entry);
    std::string unpackFile(const std::filesystem::path& path, sqfs_inode& inode);
    std::string unpackLink(const std::filesystem::path& path, sqfs_inode& inode);
    std::string damaged(const char* what) const;

    std::filesystem::path m_file;
    sqfs m_image{};
    bool m_isOpen = false;
    std::uint64_t m_offset = 0;
    std::uint64_t m_unpackedBytes = 0;
    std::string m_id;
};

// The system's reason for a call that failed on this path.
std::string systemFailure(const std::filesystem::path& path, const char* what);

} // namespace mr::appimage
