#include "core/hub/hub_places.h"

#include "core/base/file.h"
#include "core/base/hub_folder.h"
#include "core/base/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr const char* kAside = ".millrace-get"; // in a folder of the user's

Status failed(const char* what, const fs::path& path, const std::error_code& error)
{
    return Status::error(
        ErrorKind::Io, fmt::format("{} {}: {}", what, path.string(), error.message()));
}

Status makeFolder(const fs::path& folder)
{
    std::error_code error;
    fs::create_directories(folder, error);
    return error ? failed("cannot make the folder", folder, error) : Status();
}

std::string repoFolder(const HubRequest& request)
{
    return hubFolderOf(request.kind == HubKind::Model ? "models" : "datasets", request.name);
}

// Beside it and renamed: readers find the old link or the new one.
Status putLink(const fs::path& target, const fs::path& link)
{
    std::error_code error;
    if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target)
        return {};
    const fs::path temporary =
        link.parent_path() / fmt::format(".{}.{}", target.filename().string(), ::getpid());
    fs::remove(temporary, error);
    fs::create_symlink(target, temporary, error);
    if (error)
        return failed("cannot make the link", temporary, error);
    fs::rename(temporary, link, error);
    if (!error)
        return {};
    const Status status = failed("cannot make the link", link, error);
    fs::remove(temporary, error);
    return status;
}

} // namespace

HubPlaces::HubPlaces(const HubRequest& request, const fs::path& cache, std::string commit)
    : m_request(request)
    , m_commit(std::move(commit))
    , m_isPlain(!request.into.empty())
    , m_root(m_isPlain ? request.into : cache)
    , m_repo(m_root / repoFolder(request))
    , m_folder(m_isPlain ? m_root : m_repo / "snapshots" / m_commit)
{
}

fs::path HubPlaces::whole(const HubFile& file) const
{
    return m_isPlain ? m_folder / file.path : m_repo / "blobs" / file.hash;
}

fs::path HubPlaces::incomplete(const HubFile& file) const
{
    return (m_isPlain ? m_root / kAside : m_repo / "blobs") / (file.hash + ".incomplete");
}

fs::path HubPlaces::lock(const HubFile& file) const
{
    const fs::path folder = m_isPlain ? m_root / kAside : m_root / ".locks" / repoFolder(m_request);
    return folder / (file.hash + ".lock");
}

Status HubPlaces::check(const HubFile& file) const
{
    const fs::path path = m_folder / file.path;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (!fs::exists(status) || !m_isPlain)
        return {};
    if (fs::is_regular_file(status) && fs::file_size(path, error) == file.bytes && !error)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        path.string() +
            " is there and is another file; move it away or name another folder with --into");
}

Status HubPlaces::prepare(const HubFile& file) const
{
    MR_TRY(makeFolder(incomplete(file).parent_path()));
    MR_TRY(makeFolder(lock(file).parent_path()));
    return makeFolder((m_folder / file.path).parent_path());
}

Status HubPlaces::keep(const HubFile& file) const
{
    const fs::path to = whole(file);
    std::error_code error;
    if (m_isPlain && fs::exists(fs::symlink_status(to, error))) // came while this one was fetched
        return Status::error(ErrorKind::InvalidArgument,
            to.string() + " was made by another program meanwhile; move it away and ask again");
    fs::rename(incomplete(file), to, error);
    return error ? failed("cannot rename to", to, error) : syncFolder(to.parent_path());
}

Status HubPlaces::put(const HubFile& file, const fs::path& source) const
{
    const fs::path path = m_folder / file.path;
    MR_TRY(makeFolder(path.parent_path()));
    if (m_isPlain)
        return path == source ? Status() : copyWholeFile(source, path);
    fs::path target;
    const auto depth = std::count(file.path.begin(), file.path.end(), '/') + 2;
    for (std::ptrdiff_t i = 0; i < depth; ++i)
        target /= "..";
    return putLink(target / "blobs" / file.hash, path);
}

Status HubPlaces::finish() const
{
    if (m_isPlain) {
        std::error_code ignored;
        for (const auto& entry : fs::directory_iterator(m_root / kAside, ignored))
            if (entry.path().extension() == ".lock")
                fs::remove(entry.path(), ignored);
        fs::remove(m_root / kAside, ignored); // unless another download goes on there
        return {};
    }
    if (m_request.revision == m_commit)
        return {};
    const fs::path ref = m_repo / "refs" / m_request.revision;
    MR_TRY(makeFolder(ref.parent_path()));
    return replaceFile(ref, m_commit);
}

} // namespace mr
