// SentencePiece's tokenizer.model, read by libsentencepiece.
//
// Errors   InvalidArgument names the file and the fault in it.

#pragma once

#include "core/tokenizer/tokenizer.h"

namespace mr {

// tokenizer_config.json and added_tokens.json beside the file are read.
Result<std::unique_ptr<Tokenizer>> openSentencePiece(const std::filesystem::path& file);

} // namespace mr
