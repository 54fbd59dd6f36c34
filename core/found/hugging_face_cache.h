// The hub cache of Hugging Face: models--ORG--NAME/{blobs,refs,snapshots/REVISION}.
//
// A snapshot is a folder of links to blobs; a file of refs holds the revision that a name stands
// for. An unfinished download leaves blobs/HASH.incomplete and no link.
//
// Threads  One thread; blocks on files.
// Errors   As entries with their fault.
// Source   huggingface_hub, "Understand caching".

#pragma once

#include "core/found/found_models.h"
#include "core/found/small_reads.h"

#include <filesystem>

namespace mr {

bool isHuggingFaceCache(const FolderList& list);

void findInHuggingFaceCache(const FolderList& list, FoundModels& out);

} // namespace mr
