// GGUF files of a folder by their names: parts of one model together, and no picture readers.
//
// Threads  Pure functions.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mr {

// One model: a file, or the parts "NAME-00001-of-00003.gguf" that are there.
struct GgufGroup {
    std::string name; // "NAME.gguf", without the number of the part
    std::vector<std::filesystem::path> files;
    int parts = 1;

    // "part 2 of 3"; empty: all parts are there.
    std::string missing() const;
};

// In the order of names. An "mmproj" file reads pictures for a model beside it and is none.
std::vector<GgufGroup> ggufGroups(const std::vector<std::filesystem::path>& files);

} // namespace mr
