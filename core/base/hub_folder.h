// Names of repositories as folders of Hugging Face's cache: "Qwen/Qwen3-0.6B" of a model is
// "models--Qwen--Qwen3-0.6B".
//
// Threads  Pure functions.
// Source   huggingface_hub, file_download.py: repo_folder_name().

#pragma once

#include <string>
#include <string_view>

namespace mr {

// `kind`: "models" or "datasets".
std::string hubFolderOf(std::string_view kind, std::string_view name);

// Empty: the folder is none of that kind. Names of a hub have no "--" of their own.
std::string hubNameOf(std::string_view kind, std::string_view folder);

} // namespace mr
