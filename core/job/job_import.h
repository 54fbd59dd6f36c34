// The result of a job, brought home: its out/ folder becomes a run folder.
//
//     FOLDER/
//         model/ or adapter/   as a run leaves them; of an adapter with the path of its model here
//         run.json             the settings of the run that the job continued
//         steps.jsonl  events.jsonl   its losses and evaluations
//
// So the history takes it like any run folder (rebuildHistory), and every command that takes a
// model takes it.
//
// Threads  One thread; blocks on files.
// Errors   InvalidArgument: no folder of a job, a folder that is there already, an adapter whose
//          model is not here or is another one. DataCorrupt names a file, and the line or tensor.
//          Nothing is left behind where it fails.

#pragma once

#include "core/model/weights.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace mr {

struct ImportOptions {
    std::optional<ExportType> type; // of a model's weights; none: that of the run
    std::string base;               // the model beside an adapter; empty: as the run named it
};

struct ImportReport {
    std::int64_t steps = 0; // that the job made
    std::int64_t lastStep = 0;
    double lastLoss = 0.0;
    bool isAdapter = false;
};

Result<ImportReport> importJob(const std::filesystem::path& jobOut,
    const std::filesystem::path& folder, const ImportOptions& options);

} // namespace mr
