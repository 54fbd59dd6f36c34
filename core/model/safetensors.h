// Reading and writing the safetensors format.
//
// Reader: parses and checks the header of one file as hostile input; tensor bytes are read by
// position, so nothing larger than a tensor is ever held. Every rule of the format is checked:
// header length, JSON object without duplicate keys, dtype, shape times size = span without
// overflow, spans that tile the buffer exactly.
//
// Threads  A reader may be used from one thread at a time.
// Errors   DataCorrupt or InvalidArgument with file and tensor; a git-lfs pointer, a pickle and
//          an empty file are recognised and named, with the way out.
// Source   reference: model_semantics section 2.

#pragma once

#include "core/base/file.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// In a model's folder: the one file, or the list of its shards.
inline constexpr std::string_view kSafetensorsFile = "model.safetensors";
inline constexpr std::string_view kSafetensorsIndex = "model.safetensors.index.json";

// Types the format knows and we name in messages; we load F32, F16 and BF16.
struct SafetensorEntry {
    std::string dtype; // "F32", "BF16", ...
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0; // in the file
    std::uint64_t end = 0;
};

class SafetensorsReader
{
public:
    static Result<SafetensorsReader> open(const std::filesystem::path& file);

    const std::filesystem::path& path() const noexcept { return m_path; }
    const std::map<std::string, SafetensorEntry>& entries() const noexcept { return m_entries; }

    // Elements [first, first + out.size()) of a tensor, converted to F32 (F16 and BF16 are
    // exact). InvalidArgument for a dtype that is not loaded.
    Status readFloats(const std::string& name, std::int64_t first, std::span<float> out) const;

    // The bytes as they are.
    Status readBytes(const std::string& name, std::uint64_t offset, std::span<std::byte> out) const;

private:
    std::filesystem::path m_path;
    File m_file;
    std::map<std::string, SafetensorEntry> m_entries;
};

// One tensor to be written; `fill` is asked for its bytes in order, piece by piece.
struct SafetensorSource {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
    std::function<Status(std::uint64_t offset, std::span<std::byte> out)> fill;
};

// Writes `file` by a temporary file, fsync and rename, with metadata {"format":"pt"}.
Status writeSafetensors(
    const std::filesystem::path& file, const std::vector<SafetensorSource>& tensors);

} // namespace mr
