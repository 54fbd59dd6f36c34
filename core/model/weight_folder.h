// WeightFolder: the weight files of a model folder, opened and listed: which file holds which
// tensor.
//
// Threads  One thread; blocks on headers of files.
// Errors   InvalidArgument/DataCorrupt names the file, and the tensor: missing, in two files, in
//          another than the index says, a file that leads out of the folder.

#pragma once

#include "core/model/safetensors.h"

#include <millrace/status.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace mr {

struct WeightFolder {
    std::vector<std::filesystem::path> files;
    std::vector<SafetensorsReader> readers;    // of these
    std::map<std::string, std::size_t> fileOf; // by tensor

    const SafetensorEntry& entry(const std::string& name) const
    {
        return readers[fileOf.at(name)].entries().at(name);
    }
};

// InvalidArgument: "path: why".
Status refuseWeights(const std::filesystem::path& path, const std::string& why);

// The first five and a count of the others, for messages.
std::string listedNames(const std::vector<std::string>& names);

// The files that the folder has or should have by its index; they may be missing. Empty: neither
// weights nor an index that this program reads.
Result<std::vector<std::filesystem::path>> listWeightFiles(const std::filesystem::path& folder);

Result<WeightFolder> openWeightFolder(const std::filesystem::path& folder);

} // namespace mr
