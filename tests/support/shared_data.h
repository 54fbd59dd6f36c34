// Where the shared test data lies: $MILLRACE_SHARED, or beside the source tree. Tests skip what is
// not there.

#pragma once

#include <cstdlib>
#include <filesystem>

namespace mr::test {

inline std::filesystem::path sharedData()
{
    if (const char* shared = std::getenv("MILLRACE_SHARED"))
        return std::filesystem::path(shared) / "data";
    const char* source = std::getenv("MILLRACE_SOURCE");
    return std::filesystem::path(source == nullptr ? "." : source) / "../shared/data";
}

} // namespace mr::test
