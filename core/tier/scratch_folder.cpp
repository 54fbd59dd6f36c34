#include "core/tier/scratch_folder.h"

#include "core/base/file.h"

#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace mr {
namespace {

struct KnownFileSystem {
    std::uint64_t magic;
    std::string_view name;
    ScratchPlace place;
};

// linux/magic.h, and where it has no name for one: zfs from OpenZFS include/sys/fs/zfs.h
// (ZFS_SUPER_MAGIC), bcachefs from fs/bcachefs/bcachefs_format.h (BCACHEFS_STATFS_MAGIC), xfs and
// f2fs as in magic.h of newer kernels.
constexpr std::array kKnown = {
    KnownFileSystem{EXT4_SUPER_MAGIC, "ext4", ScratchPlace::Good}, // ext2 and ext3 as well
    KnownFileSystem{0x58465342, "xfs", ScratchPlace::Good},
    KnownFileSystem{F2FS_SUPER_MAGIC, "f2fs", ScratchPlace::Good},
    KnownFileSystem{OVERLAYFS_SUPER_MAGIC, "overlay", ScratchPlace::Good},
    KnownFileSystem{TMPFS_MAGIC, "tmpfs", ScratchPlace::Memory},
    KnownFileSystem{RAMFS_MAGIC, "ramfs", ScratchPlace::Memory},
    KnownFileSystem{HUGETLBFS_MAGIC, "hugetlbfs", ScratchPlace::Memory},
    KnownFileSystem{NFS_SUPER_MAGIC, "nfs", ScratchPlace::Network},
    KnownFileSystem{SMB_SUPER_MAGIC, "smb", ScratchPlace::Network},
    KnownFileSystem{0xFF534D42, "cifs", ScratchPlace::Network},
    KnownFileSystem{0xFE534D42, "smb2", ScratchPlace::Network},
    KnownFileSystem{AFS_SUPER_MAGIC, "afs", ScratchPlace::Network},
    KnownFileSystem{CODA_SUPER_MAGIC, "coda", ScratchPlace::Network},
    KnownFileSystem{0x00C36400, "ceph", ScratchPlace::Network},
    KnownFileSystem{V9FS_MAGIC, "9p", ScratchPlace::Network},
    KnownFileSystem{BTRFS_SUPER_MAGIC, "btrfs", ScratchPlace::CopyOnWrite},
    KnownFileSystem{0x2FC12FC1, "zfs", ScratchPlace::CopyOnWrite},
    KnownFileSystem{0xCA451A4E, "bcachefs", ScratchPlace::CopyOnWrite},
};

// fuse has one magic number for all; the mount table tells them apart.
constexpr std::array<std::string_view, 7> kFuseOverNetwork = {"fuse.sshfs", "fuse.glusterfs",
    "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.davfs", "fuse.ceph"};

struct Mount {
    std::string point;
    std::string device; // "259:2"
    std::string fileSystem;
    bool readOnly = false;
};

// The mount table writes a space as \040.
std::string unescaped(const std::string& text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        int code = 0;
        const char* digits = text.data() + i + 1;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
            out += static_cast<char>(code);
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

bool liesWithin(const std::string& path, const std::string& folder)
{
    return folder == "/" || path == folder ||
           (path.starts_with(folder) && path[folder.size()] == '/');
}

// "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw" (proc(5)).
std::optional<Mount> parseMount(const std::string& line)
{
    std::istringstream words(line);
    std::string id, parent, device, root, point, options, word;
    if (!(words >> id >> parent >> device >> root >> point >> options))
        return std::nullopt;
    while (words >> word && word != "-") {
    }
    std::string fileSystem;
    if (!(words >> fileSystem))
        return std::nullopt;
    const bool readOnly = options == "ro" || options.starts_with("ro,");
    return Mount{unescaped(point), device, fileSystem, readOnly};
}

// The innermost mount; of two on one point the later one, which hides the other.
Mount mountOf(const std::string& path, const std::filesystem::path& root)
{
    Mount best;
    std::ifstream table(root / "proc/self/mountinfo");
    std::string line;
    while (std::getline(table, line)) {
        const std::optional<Mount> mount = parseMount(line);
        if (mount && liesWithin(path, mount->point) && mount->point.size() >= best.point.size())
            best = *mount;
    }
    return best;
}

ScratchPlace placeOf(std::uint64_t magic, const Mount& mount)
{
    for (const KnownFileSystem& known : kKnown)
        if (known.magic == magic)
            return known.place;
    if (std::ranges::find(kFuseOverNetwork, mount.fileSystem) != kFuseOverNetwork.end())
        return ScratchPlace::Network;
    return ScratchPlace::Good;
}

std::string nameOf(std::uint64_t magic, const Mount& mount)
{
    if (!mount.fileSystem.empty())
        return mount.fileSystem;
    for (const KnownFileSystem& known : kKnown)
        if (known.magic == magic)
            return std::string(known.name);
    return "unknown";
}

// A partition has no queue of its own; its disk is the folder above.
std::optional<std::int64_t> queueNumber(const std::filesystem::path& device, const char* name)
{
    const auto own = numberInFile(device / "queue" / name);
    return own ? own : numberInFile(device / ".." / "queue" / name);
}

void describeDevice(
    ScratchFolder& folder, const std::string& number, const std::filesystem::path& root)
{
    const std::filesystem::path device = root / "sys/dev/block" / number;
    std::ifstream uevent(device / "uevent");
    std::string line;
    constexpr std::string_view kKey = "DEVNAME=";
    while (std::getline(uevent, line))
        if (line.starts_with(kKey))
            folder.device = line.substr(kKey.size());
    if (const auto rotational = queueNumber(device, "rotational"))
        folder.rotational = *rotational != 0;
    if (const auto kib = queueNumber(device, "max_sectors_kb"))
        folder.requestBytes = static_cast<std::uint64_t>(*kib) * 1024;
}

std::string warningOf(const ScratchFolder& folder)
{
    const std::string where = folder.path.string() + " lies on " + folder.fileSystem;
    switch (folder.place) {
    case ScratchPlace::Good:
        return {};
    case ScratchPlace::Memory:
        return where + ", which is memory: what is put there does not save any. Choose a folder on "
                       "an SSD.";
    case ScratchPlace::Network:
        return where + ", over a network: every step would wait for it. Choose a folder on a disk "
                       "of this machine.";
    case ScratchPlace::CopyOnWrite:
        return where + ", which writes every change to a new place: slower from step to step, and "
                       "it may report a full disk. Choose a folder on ext4 or XFS.";
    case ScratchPlace::ReadOnly:
        return where + ", and cannot be written. Choose a folder that you may write to.";
    }
    return {};
}

} // namespace

ScratchFolder describeScratchFolder(
    const ScratchFolderFacts& facts, const std::filesystem::path& root)
{
    ScratchFolder folder;
    folder.path = facts.path;
    folder.freeBytes = facts.freeBytes;
    const Mount mount = mountOf(facts.path.string(), root);
    folder.mountPoint = mount.point;
    folder.fileSystem = nameOf(facts.magic, mount);
    const bool readOnly = mount.readOnly || !facts.writable;
    folder.place = readOnly ? ScratchPlace::ReadOnly : placeOf(facts.magic, mount);
    if (!mount.device.empty())
        describeDevice(folder, mount.device, root);
    if (std::string warning = warningOf(folder); !warning.empty())
        folder.warnings.push_back(std::move(warning));
    if (facts.magic == OVERLAYFS_SUPER_MAGIC)
        folder.warnings.push_back(folder.path.string() +
                                  " lies in the layers of a container: what is below cannot be "
                                  "seen. A mounted volume is faster and outlives the container.");
    if (folder.rotational == true)
        folder.warnings.push_back(folder.path.string() + " lies on " + folder.device +
                                  ", which says that it has moving heads (virtual disks often say "
                                  "so wrongly): steps would wait for it. Choose an SSD.");
    return folder;
}

Result<ScratchFolder> inspectScratchFolder(const std::filesystem::path& path)
{
    std::error_code error;
    ScratchFolderFacts facts;
    facts.path = std::filesystem::canonical(path, error);
    struct statfs info {
    };
    if (!error && ::statfs(facts.path.c_str(), &info) != 0)
        error = std::error_code(errno, std::generic_category());
    if (!error && !std::filesystem::is_directory(facts.path, error) && !error)
        error = std::make_error_code(std::errc::not_a_directory);
    if (error)
        return Status::error(ErrorKind::Io,
            "cannot look at the scratch folder " + path.string() + ": " + error.message());
    facts.magic = static_cast<std::uint64_t>(info.f_type) & 0xFFFFFFFFU;
    facts.freeBytes =
        static_cast<std::uint64_t>(info.f_bavail) * static_cast<std::uint64_t>(info.f_bsize);
    facts.writable = (static_cast<unsigned long>(info.f_flags) & ST_RDONLY) == 0 &&
                     ::access(facts.path.c_str(), W_OK | X_OK) == 0;
    return describeScratchFolder(facts, "/");
}

} // namespace mr
