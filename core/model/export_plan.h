// Shards and the config's text of a saved model, planned apart from saveModel().
//
// Threads  Pure, except writeShards, which blocks on files.
// Errors   Io from the files; those of the master that is read.

#pragma once

#include "core/model/weights.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// model.safetensors, or shards of at most `limitBytes` and their index, with parameters and carried
// tensors in bytewise name order, the widest elements of a shard first; a tensor beyond the limit
// has a shard of its own. A file of the
// other kind left over from an earlier save is removed, because a loader would prefer or miss it.
Status writeShards(const std::filesystem::path& folder, const ParamTable& table,
    MasterReader& master, ExportType type, std::uint64_t limitBytes);

// All parameters of the table in one file.
Status writeTensors(const std::filesystem::path& file, const ParamTable& table,
    MasterReader& master, ExportType type);

// `text` (a JSON object) with its dtype field following `type`, and that of its text_config; every
// other byte stays. Where it has none, "torch_dtype", which old and new loaders read, is put first.
std::string withDtype(std::string_view text, ExportType type);

// `text` without what it says of the weights' quantisation.
std::string withoutQuantisation(std::string_view text);

// Tokenizer and generation files, which a saved model carries along.
bool isCarried(const std::string& fileName);

} // namespace mr
