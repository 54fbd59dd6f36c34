// A model folder that has an adapter in its weights, for programs that read no adapters.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument: there is no adapter, it is another model's, or the folder to write is
//          there already. DataCorrupt: what was written is not what was computed. Nothing is left
//          behind where it fails.

#pragma once

#include "core/model/merged_model.h"
#include "core/model/weights.h"
#include "core/save/model_folder.h"

#include <millrace/status.h>

#include <filesystem>
#include <optional>

namespace mr {

struct MergeReport {
    ExportType type{}; // of the weights that were written
    MergeCount count;
};

// Without `type`: F32 where the model is in F32, else BF16. Every tensor is read back and compared.
Result<MergeReport> exportMerged(
    const ModelPlace& place, const std::filesystem::path& out, std::optional<ExportType> type);

} // namespace mr
