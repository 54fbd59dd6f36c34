// Finding and removing scratch files that no program uses.

#include "core/tier/file_lock.h"
#include "core/tier/scratch_file.h"
#include "core/tier/scratch_header.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>

namespace mr {
namespace {

bool hasOurName(const std::filesystem::path& path)
{
    const std::string name = path.filename().string();
    return name.starts_with("millrace-") && name.ends_with(".scratch");
}

// Is a locked file in use? A killed program may still hold the lock, but no longer uses the file.
bool isUsed(std::uint64_t inode)
{
    const pid_t holder = lockHolder(inode);
    return holder <= 0 || !isGone(holder);
}

// With `remove`, removes it if nobody uses it. Nothing: not one of ours.
std::optional<FoundScratch> visit(const std::filesystem::path& path, bool remove)
{
    const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return std::nullopt;
    std::optional<FoundScratch> found;
    struct stat info {
    };
    auto header = readScratchHeader(descriptor, path, {});
    if (::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && header.ok() &&
        header.value().kind != ScratchHeaderKind::Foreign &&
        header.value().kind != ScratchHeaderKind::Empty) {
        found = FoundScratch{path, static_cast<std::uint64_t>(info.st_size), false};
        found->inUse = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && isUsed(info.st_ino);
        if (remove && !found->inUse && ::unlink(path.c_str()) != 0)
            found.reset();
    }
    ::close(descriptor);
    return found;
}

// Leaves out files with names that begin with `keep`; empty: leaves out none.
Result<std::vector<FoundScratch>> visitAll(
    const std::filesystem::path& folder, bool remove, const std::string& keep = {})
{
    std::error_code error;
    std::vector<FoundScratch> found;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        if (hasOurName(entry->path()) &&
            (keep.empty() || !entry->path().filename().string().starts_with(keep)))
            if (auto one = visit(entry->path(), remove); one && !(remove && one->inUse))
                found.push_back(std::move(*one));
    if (error)
        return scratchError("cannot read the folder", folder, error.value());
    std::ranges::sort(found, {}, [](const FoundScratch& f) { return f.path; });
    return found;
}

} // namespace

Result<std::vector<FoundScratch>> listScratch(const std::filesystem::path& folder)
{
    return visitAll(folder, false);
}

Result<std::vector<FoundScratch>> removeStaleScratch(
    const std::filesystem::path& folder, const std::string& keep)
{
    return visitAll(folder, true, keep.empty() ? keep : "millrace-" + keep + "-");
}

} // namespace mr
