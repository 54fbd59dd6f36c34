// The fields of PEFT's adapter_config.json, all of them: those that are read, those that change
// nothing, and variants of LoRA, which are refused.
//
// Threads  Pure.
// Errors   Kept in the JsonFields: InvalidArgument names the file, the field and what is wanted.
// Source   huggingface/peft 5d602fd, checked with peft 0.21.2.

#pragma once

#include "core/api/json_fields.h"
#include "core/model/peft_folder.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mr {

// `object` is what `fields` reads.
void readPeftFields(JsonFields& fields, const nlohmann::json& object, PeftConfig& config);

// `isTied`: the embedding is the head, and the adapter trains it whole. alpha goes out as an
// integer where it is one, because Ollama takes no other.
std::string peftConfigText(const PeftConfig& config, bool isTied);

} // namespace mr
