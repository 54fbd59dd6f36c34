// BaseFiles: where the frozen weights of a run lie in files, byte for byte as the run holds them.
//
// A run whose frozen weights do not fit its memory reads them from there for every use and writes
// nothing. A model's own files will do where they hold the type that the run computes in; other
// weights are converted, or packed to 4 bits, once (prepared_base.h).
//
// Threads  Values; ownFiles() and weightStamp() block on headers of files.
// Errors   Those of findWeights().
// Units    Bytes.

#pragma once

#include "core/device/tensor.h"
#include "core/model/frozen_model.h"
#include "core/model/model_config.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mr {

// A part of a group that lies together in a file.
struct BaseExtent {
    GroupId group;
    std::size_t at = 0; // in the group as the run holds it
    std::size_t bytes = 0;
    int file = 0;
    std::uint64_t offset = 0; // in the file; any
};

struct BaseFiles {
    std::vector<std::filesystem::path> files;
    std::vector<BaseExtent> extents; // by group, then `at`
};

// Is the group a frozen block? Embedding and head are read by every micro-batch and stay in memory.
bool isFrozenBlock(const ParamTable& trained, GroupId group) noexcept;

// The frozen blocks in the model's own files; nothing where one of their tensors has another type
// there than `compute`, or is packed.
Result<std::optional<BaseFiles>> ownFiles(const std::filesystem::path& folder,
    const ModelConfig& config, const ParamTable& trained, DType compute);

// Name, size and time of change of each file with weights in the folder: a model that was changed
// or exchanged has other words.
Result<std::string> weightStamp(
    const std::filesystem::path& folder, const ModelConfig& config, const ParamTable& trained);

} // namespace mr
