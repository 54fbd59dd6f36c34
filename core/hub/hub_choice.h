// Which files of a repository are fetched, and why the others are not.
//
// Without patterns: of a model its safetensors, configuration, tokenizer, templates and licence; of
// a dataset its data files. A program is never fetched, whatever the patterns say.
//
// Threads  Pure functions.
// Errors   InvalidArgument: a pattern that matches nothing, a model without weights that Millrace
//          reads, a repository of GGUF files of which none was named.

#pragma once

#include <millrace/hub.h>
#include <millrace/status.h>

#include <string_view>
#include <vector>

namespace mr {

struct HubChoice {
    std::vector<HubFile> files;
    std::vector<HubLeftOut> leftOut;
};

Result<HubChoice> chooseHubFiles(const HubRequest& request, const std::vector<HubFile>& files);

// '*' stands for any characters, slashes too, '?' for one.
bool matchesPattern(std::string_view pattern, std::string_view path);

} // namespace mr
