// Folders of a run, or of a checkpoint, that hold what was trained: a model, an adapter beside one,
// or in a checkpoint the one block that was trained then.
//
// Threads  Any; looks at folders.

#pragma once

#include <array>
#include <filesystem>
#include <system_error>

namespace mr {

inline constexpr std::array<const char*, 3> kTrainedFolders = {"model", "adapter", "block"};
// A run keeps blocks there between their turns.
inline constexpr const char* kBlocksFolder = "blocks";

// Empty: `parent` has none.
inline std::filesystem::path trainedFolderIn(const std::filesystem::path& parent)
{
    std::error_code ignored;
    for (const char* name : kTrainedFolders)
        if (std::filesystem::exists(parent / name, ignored))
            return parent / name;
    return {};
}

} // namespace mr
