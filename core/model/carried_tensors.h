// Carried tensors: those of a model's files that are not trained and not read: vision towers,
// projectors, heads for several tokens at once. A saved model has them, byte by byte, so that it
// is as whole as the one it came from.
//
// They are found once, when a model's folder is read; the bytes are read when a model is
// saved or hashed. A file that was changed in between is refused.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument/DataCorrupt/Io names the file and the tensor.

#pragma once

#include "core/model/safetensors.h"

#include <millrace/status.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct ModelConfig;

// The end of the name of the table that inputs of blocks come from.
inline constexpr std::string_view kInputTableName = "embed_tokens_per_layer.weight";

struct CarriedTensor {
    std::string name; // as in the file
    std::filesystem::path file;
    SafetensorEntry entry;

    std::uint64_t bytes() const noexcept { return entry.end - entry.begin; }
    bool isInputTable() const noexcept { return name.ends_with(kInputTableName); }
};

// Completes a config by what its folder holds: the tensors in F32 beside others of 16 bits, and the
// numbers that outputs of blocks are multiplied by; the spelling of names, the carried tensors, and
// whether the head is the
// embedding where config.json leaves that open. A folder without weights changes nothing.
Status readFileLayout(const std::filesystem::path& folder, ModelConfig& config);

// Does the model carry this tensor of its files? One of config.carries begins the name or, with a
// '*' before it, ends it; or it is of k and v that a block has from another one.
bool isCarried(const ModelConfig& config, std::string_view name);

// Reads carried tensors; keeps the file of the last one open.
class CarriedReader
{
public:
    Status read(const CarriedTensor& tensor, std::uint64_t offset, std::span<std::byte> out);
    // Calls take(bytes) for the whole tensor, piece by piece.
    Status forBytes(
        const CarriedTensor& tensor, const std::function<void(std::span<const std::byte>)>& take);

private:
    std::vector<SafetensorsReader> m_open; // none or one
};

} // namespace mr
