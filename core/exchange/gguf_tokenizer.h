// The tokenizer of a GGUF file as the files that a model's folder has for it.
//
// Threads  Pure functions.
// Errors   InvalidArgument names the key that is missing, of another length, or of a tokenizer that
//          is not known.
// Source   reference: export section 4.

#pragma once

#include "core/exchange/gguf_config.h"

#include <millrace/status.h>

#include <map>
#include <string>

namespace mr {

// Text by the name of the file: tokenizer.json or tokenizer.model, tokenizer_config.json, and the
// chat template where there is one.
Result<std::map<std::string, std::string>> ggufTokenizerFiles(const GgufKeys& keys);

} // namespace mr
