// Model folders and GGUF files below a folder: those of LM Studio, and folders that the user names.
//
// Links are followed, each folder once; folders whose name begins with a dot are left out. A folder
// that is a cache of Hugging Face or a store of Ollama is read as one.
//
// Threads  One thread; blocks on files.
// Errors   As entries with their fault.

#pragma once

#include "core/found/found_models.h"

#include <filesystem>

namespace mr {

void findBelow(const std::filesystem::path& root, FoundModels& out);

} // namespace mr
