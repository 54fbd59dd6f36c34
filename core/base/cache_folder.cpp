#include "core/base/cache_folder.h"

#include <cstdlib>
#include <string>
#include <system_error>

namespace mr {

namespace fs = std::filesystem;

Result<fs::path> cacheFolder()
{
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    std::error_code error;
    fs::path folder;
    if (cache != nullptr && *cache == '/')
        folder = fs::path(cache) / "millrace";
    else if (home != nullptr && *home == '/')
        folder = fs::path(home) / ".cache" / "millrace";
    else
        folder = fs::temp_directory_path(error);
    fs::create_directories(folder, error);
    if (error)
        return Status::error(ErrorKind::Io, "cannot make the folder " + folder.string() + ": " +
                                                error.message() +
                                                "; name another one in XDG_CACHE_HOME");
    return folder;
}

} // namespace mr
