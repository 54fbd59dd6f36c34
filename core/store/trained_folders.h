// Folders of a run, or of a checkpoint, that hold what was trained: a model, or an adapter beside
// one.
//
// Threads  Any; looks at folders.

#pragma once

#include <array>
#include <filesystem>
#include <system_error>

namespace mr {

inline constexpr std::array<const char*, 2> kTrainedFolders = {"model", "adapter"};

// Empty: `parent` has neither.
inline std::filesystem::path trainedFolderIn(const std::filesystem::path& parent)
{
    std::error_code ignored;
    for (const char* name : kTrainedFolders)
        if (std::filesystem::exists(parent / name, ignored))
            return parent / name;
    return {};
}

} // namespace mr
