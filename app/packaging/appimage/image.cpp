#include "image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

namespace mr::appimage {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr const char* kIdFile = "image_id";

struct Walk {
    sqfs_traverse state{};
    bool isOpen = false;
    ~Walk()
    {
        if (isOpen)
            sqfs_traverse_close(&state);
    }
};

class Output
{
public:
    Output(const fs::path& path, mode_t mode)
        : m_descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode))
    {
    }
    ~Output()
    {
        if (m_descriptor >= 0)
            (void)::close(m_descriptor);
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    bool isOpen() const { return m_descriptor >= 0; }
    bool write(const char* data, std::size_t bytes)
    {
        while (bytes > 0) {
            const ssize_t written = ::write(m_descriptor, data, bytes);
            if (written < 0 && errno == EINTR)
                continue;
            if (written <= 0)
                return false;
            data += written;
            bytes -= static_cast<std::size_t>(written);
        }
        return true;
    }

private:
    int m_descriptor;
};

} // namespace

std::string systemFailure(const fs::path& path, const char* what)
{
    return path.string() + ": " + what + " (" + std::strerror(errno) + ")";
}

Image::~Image()
{
    if (m_isOpen) {
        sqfs_fd_t descriptor = m_image.fd;
        sqfs_destroy(&m_image);
        sqfs_fd_close(descriptor);
    }
}

std::string Image::damaged(const char* what) const
{
    return m_file.string() + ": " + what + "; the file is damaged: fetch it again";
}

// Behind the section headers, which a linker puts last.
std::string Image::findOffset()
{
    Elf64_Ehdr header{};
    std::array<char, 4> magic{};
    std::ifstream stream(m_file, std::ios::binary);
    stream.read(reinterpret_cast<char*>(&header), sizeof header);
    if (!stream || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return damaged("its program cannot be read");
    m_offset = header.e_shoff + std::uint64_t{header.e_shentsize} * header.e_shnum;
    stream.seekg(static_cast<std::streamoff>(m_offset));
    stream.read(magic.data(), magic.size());
    if (!stream || std::memcmp(magic.data(), "hsqs", magic.size()) != 0)
        return damaged("nothing is packed behind its program");
    return {};
}

std::string Image::open(const fs::path& file)
{
    m_file = file;
    if (std::string failure = findOffset(); !failure.empty())
        return failure;
    sqfs_fd_t descriptor = -1;
    if (sqfs_fd_open(file.c_str(), &descriptor, false) != SQFS_OK)
        return systemFailure(file, "cannot be opened");
    if (sqfs_init(&m_image, descriptor, m_offset) != SQFS_OK) {
        sqfs_fd_close(descriptor);
        return damaged("what is packed in it is no squashfs");
    }
    m_isOpen = true;
    return readFacts();
}

std::string Image::readFacts()
{
    Walk walk;
    sqfs_err error = sqfs_traverse_open(&walk.state, &m_image, sqfs_inode_root(&m_image));
    walk.isOpen = error == SQFS_OK;
    while (error == SQFS_OK && sqfs_traverse_next(&walk.state, &error)) {
        if (walk.state.dir_end)
            continue;
        sqfs_inode inode{};
        if (std::string failure = readInode(walk.state.entry, inode); !failure.empty())
            return failure;
        if (!S_ISREG(inode.base.mode))
            continue;
        m_unpackedBytes += inode.xtra.reg.file_size;
        if (std::strcmp(walk.state.path, kIdFile) != 0)
            continue;
        std::array<char, 65> text{};
        sqfs_off_t bytes = text.size() - 1;
        if (sqfs_read_range(&m_image, &inode, 0, &bytes, text.data()) == SQFS_OK)
            m_id.assign(text.data(), std::strcspn(text.data(), "\n"));
    }
    if (error != SQFS_OK)
        return damaged("its list of files cannot be read");
    const bool isId =
        m_id.size() >= 16 && m_id.find_first_not_of("0123456789abcdef") == std::string::npos;
    return isId ? std::string() : damaged("it has no file image_id with a name for its content");
}

std::string Image::readInode(const sqfs_dir_entry& entry, sqfs_inode& inode)
{
    sqfs_dir_entry copy = entry; // the library reads through a pointer to non-const
    if (sqfs_inode_get(&m_image, &inode, sqfs_dentry_inode(&copy)) != SQFS_OK)
        return damaged("a file in it cannot be read");
    return {};
}

std::string Image::unpack(const fs::path& folder)
{
    Walk walk;
    sqfs_err error = sqfs_traverse_open(&walk.state, &m_image, sqfs_inode_root(&m_image));
    walk.isOpen = error == SQFS_OK;
    while (error == SQFS_OK && sqfs_traverse_next(&walk.state, &error)) {
        if (walk.state.dir_end)
            continue;
        std::string failure = unpackEntry(folder / walk.state.path, walk.state.entry);
        if (!failure.empty())
            return failure;
    }
    return error == SQFS_OK ? std::string() : damaged("a folder in it cannot be read");
}

std::string Image::unpackEntry(const fs::path& path, const sqfs_dir_entry& entry)
{
    sqfs_inode inode{};
    if (std::string failure = readInode(entry, inode); !failure.empty())
        return failure;
    if (S_ISDIR(inode.base.mode))
        return ::mkdir(path.c_str(), 0755) == 0 ? std::string()
                                                : systemFailure(path, "cannot be made");
    if (S_ISLNK(inode.base.mode))
        return unpackLink(path, inode);
    if (S_ISREG(inode.base.mode))
        return unpackFile(path, inode);
    return damaged("it holds something that is neither file, folder nor link");
}

std::string Image::unpackFile(const fs::path& path, sqfs_inode& inode)
{
    const auto mode = static_cast<mode_t>((inode.base.mode & 0555U) | 0200U);
    Output output(path, mode);
    if (!output.isOpen())
        return systemFailure(path, "cannot be made");
    const auto piece = std::make_unique<char[]>(kPieceBytes);
    const std::uint64_t all = inode.xtra.reg.file_size;
    for (std::uint64_t done = 0; done < all;) {
        sqfs_off_t bytes = kPieceBytes;
        const auto at = static_cast<sqfs_off_t>(done);
        if (sqfs_read_range(&m_image, &inode, at, &bytes, piece.get()) != SQFS_OK || bytes <= 0)
            return damaged("a file in it cannot be unpacked");
        if (!output.write(piece.get(), static_cast<std::size_t>(bytes)))
            return systemFailure(path, "cannot be written");
        done += static_cast<std::uint64_t>(bytes);
    }
    return {};
}

std::string Image::unpackLink(const fs::path& path, sqfs_inode& inode)
{
    std::array<char, 4096> target{};
    std::size_t bytes = target.size();
    if (sqfs_readlink(&m_image, &inode, target.data(), &bytes) != SQFS_OK)
        return damaged("a link in it cannot be read");
    return ::symlink(target.data(), path.c_str()) == 0 ? std::string()
                                                       : systemFailure(path, "cannot be made");
}

} // namespace mr::appimage
