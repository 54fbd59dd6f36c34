// Which models a GGUF file can hold so that llama.cpp computes the model and nothing else.
//
// Threads  Pure functions.
// Errors   InvalidArgument names the feature and the way out.
// Source   reference: export sections 3, 5.4 and 12; src/models of llama.cpp.

#pragma once

#include "core/model/gguf_family.h"
#include "core/model/model_config.h"

#include <millrace/status.h>

#include <string>
#include <vector>

namespace mr {

Result<const GgufFamily*> checkGguf(const ModelConfig& config);

// Sentences on what llama.cpp leaves out of such a model.
std::vector<std::string> ggufNotes(const ModelConfig& config);

} // namespace mr
