// A model folder that has an adapter in its weights, for programs that read no adapters.
//
// An adapter that was trained beside a model in NF4 goes into what that stands for, which is what
// it was trained to correct; or, if asked, into the weights before they were quantised.
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
    ExportType type{};  // of the weights that were written
    bool isNf4 = false; // the adapter is in the model as NF4 holds it
    MergeCount count;
};

struct MergeOptions {
    std::optional<ExportType> type; // none: F32 where the model is in F32, else BF16
    // The weights before they were quantised. InvalidArgument: none are there.
    bool original = false;
};

// Every tensor is read back and compared.
Result<MergeReport> exportMerged(
    const ModelPlace& place, const std::filesystem::path& out, const MergeOptions& options);

} // namespace mr
