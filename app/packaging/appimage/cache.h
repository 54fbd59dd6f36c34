// The folder that an AppImage is unpacked into: $XDG_CACHE_HOME/millrace/appimage/<id>, once for
// each content, because nothing need be mounted then: no FUSE, no program with root's rights.
//
// A program that runs from such a folder holds a shared lock, <id>.lock, until its process ends.
// Unpacking one version removes the others that nobody runs, and what a killed unpacking left.
//
// Threads  One. Several processes may come at once: each unpacks beside the others, one gets the
// name. Errors   A sentence that names the file and the way out; empty where there is none.

#pragma once

#include "image.h"

#include <filesystem>
#include <string>

namespace mr::appimage {

struct Unpacked {
    std::filesystem::path folder;
    std::string failure; // empty: the folder is there
};

// Unpacks if that was not done yet, and says so on standard error. The lock stays open through
// exec.
Unpacked unpackOnce(Image& image);

} // namespace mr::appimage
