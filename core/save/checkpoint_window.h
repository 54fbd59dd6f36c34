// The part of a checkpoint that a policy with windows adds: stale parts, saved as pending
//
//     state/window.safetensors   by group: both banks of sums (a job in flight has written new
//                                weights over part of them), gradients that landed and are not
//                                summed, the device's sums, energies, and the owners of the
//                                columns; in runs with compact state or state on disk also the
//                                device's columns of master and moments, which other runs publish
//                                into the host's arrays and save there
//
// Threads  Engine thread, between steps; blocks on files.
// Errors   As checkpoint.h.

#pragma once

#include "core/save/checkpoint.h"

#include <filesystem>

namespace mr {

Status writeWindow(const CheckpointContext& context, const std::filesystem::path& file);

// After master and moments were loaded into the host's arrays. Sets banks, lists, the device's
// columns, and the bytes that a job in flight has already written.
Status loadWindow(const CheckpointContext& context, const std::filesystem::path& file,
    const RunProgress& progress);

} // namespace mr
