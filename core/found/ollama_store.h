// The store of Ollama: manifests/HOST/NAMESPACE/NAME/TAG and blobs/sha256-HEX.
//
// A model is a GGUF file among the blobs; it has no name of its own, so that several models may
// share it.
//
// Threads  One thread; blocks on files.
// Errors   As entries with their fault.

#pragma once

#include "core/found/found_models.h"
#include "core/found/small_reads.h"

#include <filesystem>

namespace mr {

bool isOllamaStore(const FolderList& list);

void findInOllamaStore(const std::filesystem::path& store, FoundModels& out);

} // namespace mr
