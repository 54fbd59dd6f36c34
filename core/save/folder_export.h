// A model as a folder of safetensors, as transformers and most programs read it; the adapter that a
// run trained is in its weights.
//
// An adapter that was trained beside a model in NF4 goes into what that stands for, which is what
// it was trained to correct; or, if asked, into the weights before they were quantised.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument: the adapter is another model's, a weight is beyond the type, or the
//          folder to write is there already. DataCorrupt: what was written is not what was
//          computed. Nothing is left behind where it fails.
// Units    Bytes.

#pragma once

#include "core/base/write_progress.h"
#include "core/model/merged_model.h"
#include "core/model/weights.h"
#include "core/save/model_folder.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace mr {

struct FolderReport {
    ExportType type{};       // of the weights that were written
    bool isNf4 = false;      // the adapter is in the model as NF4 holds it
    MergeCount count;        // without an adapter 0
    std::uint64_t bytes = 0; // of the files
};

struct FolderOptions {
    std::optional<ExportType> type; // none: F32 where the model is in F32, else BF16
    // The weights before they were quantised. InvalidArgument: none are there.
    bool original = false;
    std::uint64_t shardBytes = kShardBytes; // of one file
    WriteProgress progress = {};
};

// Every tensor is read back and compared.
Result<FolderReport> exportFolder(
    const ModelPlace& place, const std::filesystem::path& out, const FolderOptions& options);

} // namespace mr
