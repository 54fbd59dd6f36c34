// Small files and folders of strangers, read within limits.
//
// Threads  Any; blocks on files.
// Errors   None: a file that cannot be read is empty, a folder that cannot be read has a fault.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// The first bytes of a regular file, at most `most`.
std::string headOf(const std::filesystem::path& file, std::uint64_t most);

// The first line that is not blank, trimmed, and no longer than a line of a screen.
std::string firstLine(std::string_view text);

struct FolderList {
    static constexpr std::size_t kMostEntries = 10'000;

    std::vector<std::filesystem::path> folders; // each by name; links are followed
    std::vector<std::filesystem::path> files;
    std::vector<std::filesystem::path> broken; // links that lead to nothing
    std::string fault;                         // why entries are missing; empty: none is
};

FolderList listFolder(const std::filesystem::path& folder);

// Bytes of those that are there.
std::uint64_t bytesOf(const std::vector<std::filesystem::path>& files);

} // namespace mr
