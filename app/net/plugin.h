// Interface of the network plugin, libmillrace_net.so, to the program that loads it.
//
// The program itself has no code that opens a connection. It loads this plugin, and Qt's network
// behind it, only when its user asks for something from a hub or of Ollama. C++ objects cross the
// border: both sides must be built by one compiler from one set of headers, which `abi` proves.
// Compare it before anything else is used.
//
// Threads    makeTransport() from any thread. Where the process has no QCoreApplication, the
//            transport makes one on its own thread: then one transport a process.
// Ownership  The table lives as long as the library is loaded, and that must be as long as the
//            process.

#pragma once

#include "core/hub/http_transport.h"

#include <memory>

namespace mr::app {

struct NetPlugin {
    const char* abi; // kNetAbi of plugin_abi.h as the plugin saw it; first for good
    std::unique_ptr<HttpTransport> (*makeTransport)();
};

// The name and type of the exported function.
inline constexpr const char* kNetPluginEntry = "millraceNetPlugin";
using NetPluginEntry = const NetPlugin* (*)();

} // namespace mr::app
