// The licence that the files of a model name: never guessed, empty where none does.
//
// Threads  Any; blocks on small files.

#pragma once

#include "core/gguf/gguf_file.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace mr {

// license_name or license of the front matter of a README.md.
std::string licenceOfReadme(std::string_view text);

// The licence that README.md names, or else the first line of the file LICENSE.
std::string licenceOfFolder(const std::filesystem::path& folder);

// general.license.name or general.license.
std::string licenceOf(const GgufFile& file);

} // namespace mr
