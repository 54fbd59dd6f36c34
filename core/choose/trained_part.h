// The part of a model that a run trains, as its spec says it: all of it, some layers, or an adapter
// beside it.
//
// Threads  Pure, except takeAdapterSettings(), which reads a small file.
// Errors   InvalidArgument names the option, what is wrong and what there is.

#pragma once

#include "core/model/frozen_model.h"
#include "core/model/model_config.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <string>
#include <vector>

namespace mr {

// "full", "layers", "blocks" (in turn), "lora" or "qlora", as PlanReport::method; another word as
// the spec has it.
std::string methodWord(const RunSpec& spec);

// Rank, alpha and modules of the adapter that the run goes on from (RunSpec::adapterDir), in
// `spec`. Refuses others that were given beside it. Its dropout is taken where none was given. Does
// nothing without one, and where its folder is gone: the record of a run holds them.
Status takeAdapterSettings(RunSpec& spec);

// The table of all trained parameters.
Result<ParamTable> trainedTable(const RunSpec& spec, const ModelConfig& config);
// Is every weight of the model trained? Then so is the table of ModelConfig::layerInput.
bool trainsWholeModel(const RunSpec& spec);

// Groups that take turns where the spec wants that: all blocks, or the layers it names.
Result<std::vector<GroupId>> groupsOfTurns(const RunSpec& spec, const ModelConfig& config);

// Names the part in the cache of rates; empty: all of the model.
std::string trainedWords(const RunSpec& spec);

} // namespace mr
