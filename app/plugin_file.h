// The file of a plugin: where it is looked for, and whether the system's loader takes it.
//
// Looked for in this order: the file that the plugin's environment variable names; ../lib and
// ../lib/millrace from the program's folder; that folder itself.
//
// Threads    Any.
// Ownership  A plugin stays loaded until the process ends: objects made by it are code in it.

#pragma once

#include <filesystem>
#include <string>

namespace mr::app {

// Empty: the variable is not set.
std::filesystem::path pluginOfEnvironment(const char* environment);

// Path of the plugin, or the one the environment names, even if it is missing; empty: none found.
std::filesystem::path findPlugin(const char* environment, const char* fileName);

// By its first bytes.
bool isSharedLibrary(const std::filesystem::path& file);

// nullptr: it cannot be loaded, and loaderText() says why. By its full path: a bare name would be
// looked for in the system's folders.
void* loadLibrary(const std::filesystem::path& file);
std::string loaderText();

} // namespace mr::app
