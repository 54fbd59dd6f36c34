// The weights that a run trained, in files that other programs open: model/, or adapter/ where they
// are an adapter beside a model (a PEFT folder in F32, with the hash of that model). A checkpoint
// of a run in which groups take turns has the one that is trained in block/, as the run reads it.
//
// Threads  Engine thread, between steps; blocks on files.
// Errors   Those of saveModel(), savePeft() and their readers.

#pragma once

#include "core/save/checkpoint.h"

#include <filesystem>
#include <string>

namespace mr {

// "model" or "adapter", of a run.
std::string trainedFolder(const ParamTable& table);

// Writes that folder below `parent`. A chat template that the model was taught goes with it. Where
// groups take turns, `trained` reads the whole model.
Status saveTrained(
    const CheckpointContext& context, const std::filesystem::path& parent, MasterReader& trained);
// The folder of a checkpoint.
Status saveForCheckpoint(
    const CheckpointContext& context, const std::filesystem::path& parent, MasterReader& trained);

// Makes those of a checkpoint the weights of the run. What stays beside an adapter is not touched.
Status loadTrained(const CheckpointContext& context, const std::filesystem::path& parent);

} // namespace mr
