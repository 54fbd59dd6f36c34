// Model folders in and out: weights from (sharded) safetensors to the halves of the master, and
// back to a folder that any Llama loader opens.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument/DataCorrupt name the file and tensor: missing, surplus, misshapen,
//          truncated, not yet fetched (git-lfs), a pickle, an unsupported dtype.

#pragma once

#include "core/model/model_config.h"
#include "core/model/param_table.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace mr {

// Where one group's master lies: `elements` entries each.
struct MasterView {
    std::span<std::uint16_t> high;
    std::span<std::int16_t> low;
};

// What is known of a model folder without reading the weights. Everything expected is found
// exactly once, with the right shape; everything else was reported.
struct WeightFiles {
    struct Location {
        std::size_t file = 0; // into `files`
        std::string name;
    };
    std::vector<std::filesystem::path> files;
    std::vector<Location> of;        // by index of ParamTable::tensors
    std::vector<std::string> dtypes; // distinct, of the expected tensors
    std::uint64_t bytes = 0;
};

Result<WeightFiles> findWeights(
    const std::filesystem::path& folder, const ModelConfig& config, const ParamTable& table);

// `views`: one per group, zeroed padding included. BF16 and F16 sources are exact in the master.
Status loadWeights(
    const WeightFiles& files, const ParamTable& table, std::span<const MasterView> views);

// normal(0, initializer_range) for matrices, 1 for norms, 0 for biases; Philox keyed by the
// tensor's name and `seed`, so the values do not depend on order or threads.
void initializeWeights(const ModelConfig& config, const ParamTable& table, std::uint64_t seed,
    std::span<const MasterView> views);

// XXH3-128 of the F32 master, little-endian, tensors in bytewise name order, tied once
// (DECISIONS 16). 32 hex digits.
std::string weightsHash(const ParamTable& table, std::span<const MasterView> views);

enum class ExportType : std::uint8_t { F32, BF16 };

// Writes a model folder: model.safetensors (sharded at 5 GB with an index), config.json (as read;
// only its dtype field follows `type`), and every tokenizer and generation file of `carryFrom`
// unchanged. Files are written whole (temporary file, fsync, rename); the folder is created.
Status saveModel(const std::filesystem::path& folder, const ModelConfig& config,
    const ParamTable& table, std::span<const MasterView> views, ExportType type,
    const std::filesystem::path& carryFrom);

} // namespace mr
