#include "cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace mr::appimage {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPart = ".part-";
constexpr const char* kLock = ".lock";
constexpr const char* kAnother = ". Name a folder with room for it in XDG_CACHE_HOME, or unpack "
                                 "the file by --appimage-extract and start squashfs-root/AppRun";

fs::path variable(const char* name)
{
    const char* text = std::getenv(name);
    return text ? fs::path(text) : fs::path();
}

fs::path cacheFolder()
{
    if (fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute())
        return cache / "millrace" / "appimage";
    if (fs::path home = variable("HOME"); home.is_absolute())
        return home / ".cache" / "millrace" / "appimage";
    return {};
}

// Negative: it cannot be opened. `how` is flock()'s.
int lockOf(const fs::path& folder, const std::string& id, int how)
{
    const int lock = ::open((folder / (id + kLock)).c_str(), O_RDWR | O_CREAT, 0600);
    if (lock >= 0 && ::flock(lock, how) != 0) {
        (void)::close(lock);
        return -1;
    }
    return lock;
}

// Whether an unpacking that was killed left it behind.
bool isLeftOver(const std::string& name)
{
    const std::size_t at = name.find(kPart);
    if (at == std::string::npos)
        return false;
    const int process = std::atoi(name.c_str() + at + std::string_view(kPart).size());
    return process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
}

// A version in use keeps its shared lock, so the exclusive one is not to be had.
void removeOthers(const fs::path& folder, const std::string& id)
{
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (isLeftOver(name)) {
            fs::remove_all(entry.path(), error);
            continue;
        }
        if (name == id || name.find('.') != std::string::npos)
            continue;
        const int lock = lockOf(folder, name, LOCK_EX | LOCK_NB);
        if (lock < 0)
            continue;
        fs::remove_all(entry.path(), error);
        (void)::close(lock);
    }
}

// Everything on the disk before it gets its name.
std::string nameIt(const fs::path& part, const fs::path& named)
{
    const int folder = ::open(part.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool isOnDisk = folder >= 0 && ::syncfs(folder) == 0;
    std::string failure = isOnDisk ? std::string() : systemFailure(part, "cannot be written");
    if (folder >= 0)
        (void)::close(folder);
    std::error_code error;
    if (failure.empty() && ::rename(part.c_str(), named.c_str()) != 0 && !fs::exists(named, error))
        failure = systemFailure(named, "cannot be made");
    return failure;
}

std::string unpackInto(Image& image, const fs::path& named)
{
    const fs::path part = named.string() + kPart + std::to_string(::getpid());
    (void)std::fprintf(stderr, "Millrace unpacks itself into %s, once for this version (%llu MB)\n",
        named.c_str(), static_cast<unsigned long long>(image.unpackedBytes() / 1000000));
    std::error_code error;
    fs::remove_all(part, error);
    std::string failure = ::mkdir(part.c_str(), 0700) == 0 ? image.unpack(part)
                                                           : systemFailure(part, "cannot be made");
    if (failure.empty())
        failure = nameIt(part, named);
    fs::remove_all(part, error); // gone if it got its name
    return failure;
}

} // namespace

Unpacked unpackOnce(Image& image)
{
    const fs::path folder = cacheFolder();
    if (folder.empty())
        return {
            {}, std::string("there is no folder to unpack into: neither XDG_CACHE_HOME nor HOME "
                            "is set") +
                    kAnother};
    std::error_code error;
    fs::create_directories(folder, error);
    if (lockOf(folder, image.id(), LOCK_SH) < 0)
        return {{}, systemFailure(folder, "cannot be written") + kAnother};
    const fs::path named = folder / image.id();
    if (fs::exists(named, error))
        return {named, {}};
    if (std::string failure = unpackInto(image, named); !failure.empty())
        return {{}, failure + kAnother};
    removeOthers(folder, image.id());
    return {named, {}};
}

} // namespace mr::appimage
