// The address of the hub, and the token that it knows the user by.
//
// HF_ENDPOINT names the hub. HF_TOKEN is the token, else the file that HF_TOKEN_PATH names, else
// $HF_HOME/token. Keyrings are not read. A token goes over https, or to this machine itself, and to
// no other host.
//
// Threads  Reads the environment and a small file.
// Errors   InvalidArgument names the variable or the file, never the token.

#pragma once

#include "core/hub/http_fields.h"

#include <millrace/status.h>

#include <filesystem>
#include <functional>
#include <string>

namespace mr {

// The value of a variable; nullptr: it is not set.
using Environment = std::function<const char*(const char* name)>;
Environment processEnvironment();

struct HubEndpoint {
    HttpUrl url;
    std::string token;          // empty: none
    bool isTokenUnsent = false; // there is one, but the way to the hub is not secure

    std::string addressOf(const std::string& path) const; // `path` begins with a slash
};

Result<HubEndpoint> hubEndpoint(const Environment& environment);

// HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface.
Result<std::filesystem::path> hubHome(const Environment& environment);
// HF_HUB_CACHE, else the folder "hub" of it.
Result<std::filesystem::path> hubCache(const Environment& environment);

} // namespace mr
