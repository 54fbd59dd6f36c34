// Options of `millrace export`, and its forms.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <string>

namespace mr::app {

struct ExportOptions {
    std::string model;
    std::string adapter;
    std::string form;
    std::string out;
    std::string precision = "auto";
    std::string shard = "5GB";
    std::string base = "auto";
    std::string check = "full";
    std::string device = "auto";
    std::int64_t threads = 0;
    bool json = false;
};

// True: --base original.
Result<bool> isOriginalBase(const ExportOptions& options);

// A GGUF file, or the folder of one for Ollama. Returns the exit code.
int exportGgufForm(const ExportOptions& options);

} // namespace mr::app
