// The part of a checkpoint that a policy with windows adds: stale parts, saved as pending
//
//     state/window.safetensors   by group: both banks of sums (of a job in flight: partly the new
//                                weights that are written over them), what has landed and is not
//                                summed, the device's sums, energies, and whose the columns are;
//                                of a run whose state is compact or on disk also the device's
//                                columns of master and moments, which in other runs are published
//                                into the host's arrays and saved there
//
// Threads  Engine thread, between steps; blocks on files.
// Errors   As checkpoint.h.

#pragma once

#include "core/save/checkpoint.h"

#include <filesystem>

namespace mr {

Status writeWindow(const CheckpointContext& context, const std::filesystem::path& file);

// After master and moments were loaded into the host's arrays. Sets banks, lists, the device's
// columns, and what a job in flight has already written.
Status loadWindow(const CheckpointContext& context, const std::filesystem::path& file,
    const RunProgress& progress);

} // namespace mr
