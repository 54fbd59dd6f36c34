// Finds and loads the network plugin, when the user asks for something from a hub or of Ollama.
//
// The environment variable MILLRACE_NET_PLUGIN may name the file (app/plugin_file.h).
//
// Threads    Any; blocking.
// Errors     InvalidArgument in one sentence: no plugin here, Qt missing (with the system loader's
//            words), a file that is no plugin or one of another build.

#pragma once

#include "app/net/plugin.h"

#include <millrace/status.h>

#include <filesystem>
#include <memory>

namespace mr::app {

std::filesystem::path findNetPlugin();
Result<const NetPlugin*> loadNetPlugin(const std::filesystem::path& file);

// The first moment at which this process has code that opens a connection. Once a process.
Result<std::unique_ptr<HttpTransport>> openNetwork();

} // namespace mr::app
