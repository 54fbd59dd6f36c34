// ScratchFolder: the drive and file system of a folder, and whether a scratch file belongs there.
//
// Scratch files are overwritten whole several times a minute. Some places cannot bear that (a
// network share), make no sense (memory that is to be saved), or turn every overwrite into an
// allocation (copy-on-write). The user chose the folder, so these are sentences, not refusals;
// only a folder that cannot be written is useless.
//
// Threads  Any; a value.
// Errors   Io, if the folder cannot be looked at.
// Units    Bytes.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mr {

enum class ScratchPlace : std::uint8_t {
    Good,
    Memory,      // tmpfs, ramfs
    Network,     // nfs, cifs, sshfs, 9p, ...
    CopyOnWrite, // btrfs, zfs, bcachefs
    ReadOnly,    // mounted so, or without permission
};

struct ScratchFolder {
    std::filesystem::path path; // canonical
    ScratchPlace place = ScratchPlace::Good;
    std::string fileSystem; // "ext4", as the mount table calls it
    std::string mountPoint;
    std::string device; // "nvme0n1p2"; empty: not known
    std::uint64_t freeBytes = 0;
    std::optional<bool> rotational;            // a disk with heads
    std::optional<std::uint64_t> requestBytes; // the largest the block layer passes on whole
    std::vector<std::string> warnings;         // a sentence each, with the way out
};

// Facts of a folder from the kernel, apart from its tables. Tests make them up.
struct ScratchFolderFacts {
    std::filesystem::path path; // canonical
    std::uint64_t magic = 0;    // statfs f_type
    std::uint64_t freeBytes = 0;
    bool writable = true;
};

Result<ScratchFolder> inspectScratchFolder(const std::filesystem::path& path);

// inspectScratchFolder() for given facts; `root` is where proc/ and sys/ lie.
ScratchFolder describeScratchFolder(
    const ScratchFolderFacts& facts, const std::filesystem::path& root);

} // namespace mr
