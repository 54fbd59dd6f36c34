// A model folder or a GGUF file judged: what can be done with it, and why no more.
//
// The readers of training and asking look at configs, headers and tokenizers; no
// weight is read and nothing is written. Whether a model fits this machine is not asked.
//
// Threads  Any; blocks on files.
// Errors   As the `reason` of the model.

#pragma once

#include "core/found/found_models.h"
#include "core/found/gguf_names.h"
#include "core/found/small_reads.h"

#include <filesystem>

namespace mr {

// Whether it has weights beside a config.json, or an index of them.
bool isModelFolder(const FolderList& list);

// Whether it has an adapter of PEFT.
bool holdsAdapter(const FolderList& list);

// All of the model but its name, store and revision. `list` is that of the folder.
FoundModel judgeFolder(const std::filesystem::path& folder, const FolderList& list);
FoundModel judgeGguf(const GgufGroup& group);

} // namespace mr
