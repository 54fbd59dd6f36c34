// The manifest of a model of Ollama: the blobs that it is made of.
//
// Threads  Pure functions.
// Errors   InvalidArgument or DataCorrupt names the source and the field. A digest is "sha256:" and
//          64 digits in lower case, so that no name of a blob leaves the folder of blobs.
// Source   the image manifest of the Open Container Initiative; server/manifest.go of Ollama.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct OllamaLayer {
    std::string kind;   // "model", "license", "adapter", ...; empty: not of Ollama
    std::string digest; // 64 hexadecimal digits
    std::uint64_t bytes = 0;
};

Result<std::vector<OllamaLayer>> parseOllamaManifest(
    std::string_view text, const std::string& source);

} // namespace mr
