// A GGUF file as the model folder that it stands for.
//
// config.json, tokenizer and chat template are made of its metadata, in a folder that is kept for
// the next time; its weights stay where they are, behind a link. Programs above read a folder like
// any other.
//
// Threads  One thread a file; blocks on the header of the file and the cache.
// Errors   Those of GgufFile; InvalidArgument names what the metadata lacks; Io of the cache.

#pragma once

#include <millrace/status.h>

#include <filesystem>

namespace mr {

// By its first bytes.
bool isGgufFile(const std::filesystem::path& path);

// The folder of `file`, made if it is not there or the file was changed since. It lies in `under`;
// empty: in the user's cache.
Result<std::filesystem::path> ggufFolder(
    const std::filesystem::path& file, const std::filesystem::path& under = {});

} // namespace mr
