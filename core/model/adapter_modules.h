// The modules of an adapter: those that its settings name, with their ranks and scales.
//
// Threads  Pure.
// Errors   InvalidArgument names the module, pattern or rank, and what there is.

#pragma once

#include "core/model/frozen_model.h"

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Before the name of a module in PEFT's files.
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

// Does the entry end the module's name, at a dot?
bool isTarget(const std::string& module, const std::string& entry);

// The block of "model.layers.12.mlp.up_proj".
std::int64_t blockOf(const std::string& module);

// In the order of the model; where their matrices lie is not set yet.
Result<std::vector<AdapterModule>> adapterModules(
    const ParamTable& model, const AdapterSettings& settings);

// `settings` in words that PEFT takes for the same modules. In a model within another, ends of
// names are those of towers, too; PEFT takes numbers of layers beside a list of targets alone; and
// "all-linear" and expressions may be the projections of inputs of blocks, too.
Result<AdapterSettings> settingsForPeft(const ParamTable& model, const AdapterSettings& settings);

} // namespace mr
