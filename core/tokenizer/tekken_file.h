// tekken.json, Mistral's own tokenizer file: an expression that cuts words, tokens as bytes in the
// order of their ranks, and control tokens, which have the first ids.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument names the file and the field.

#pragma once

#include <millrace/status.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace mr {

struct TekkenFile {
    std::string pattern;
    std::vector<std::string> controls; // by id
    std::vector<std::string> tokens;   // bytes by rank, the 256 single ones first; behind controls
};

Result<TekkenFile> readTekken(const std::filesystem::path& file);

// The stage of a tokenizer.json that cuts words at `pattern` and hands them on as bytes.
nlohmann::json tekkenPreTokenizer(const std::string& pattern);

// Puts the pattern of a tekken.json in `folder` into `content`, the tokenizer.json beside it, where
// the two differ. Returns a sentence about it for the user; empty: they agree, or there is none.
std::string takeTekkenPattern(const std::filesystem::path& folder, nlohmann::json& content);

} // namespace mr
