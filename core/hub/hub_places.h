// HubPlaces: where the files of a repository lie on this machine.
//
// In the cache that huggingface_hub and transformers share: blobs/HASH holds the bytes,
// snapshots/COMMIT/PATH is a relative link to it, and refs/REVISION holds the commit. With a folder
// of the user's choice, DIR/PATH is the file itself, and what is not complete lies in
// DIR/.millrace-get until all is done.
//
// Threads  Any; a blob's functions under its BlobLock.
// Errors   Io with the path. InvalidArgument: another file is in the way.
// Source   huggingface_hub's documented cache layout.

#pragma once

#include <millrace/hub.h>
#include <millrace/status.h>

#include <filesystem>
#include <string>

namespace mr {

class HubPlaces
{
public:
    // `cache` is used where the request names no folder.
    HubPlaces(const HubRequest& request, const std::filesystem::path& cache, std::string commit);

    const std::filesystem::path& folder() const noexcept { return m_folder; }
    // The bytes, when they are complete and right.
    std::filesystem::path whole(const HubFile& file) const;
    std::filesystem::path incomplete(const HubFile& file) const;
    std::filesystem::path lock(const HubFile& file) const;

    // InvalidArgument where a file of the user's folder is in the way: one of another length.
    Status check(const HubFile& file) const;
    // The folders that the file and its lock need.
    Status prepare(const HubFile& file) const;
    // incomplete() becomes whole().
    Status keep(const HubFile& file) const;
    // The file under its path: a link, or a copy of `source`, which has the same bytes.
    Status put(const HubFile& file, const std::filesystem::path& source) const;
    // After the last file: the revision names the commit. Locks of the user's folder are removed.
    Status finish() const;

    bool isPlain() const noexcept { return m_isPlain; }

private:
    HubRequest m_request;
    std::string m_commit;
    bool m_isPlain;
    std::filesystem::path m_root;   // of the cache or the user's folder
    std::filesystem::path m_repo;   // in the cache
    std::filesystem::path m_folder; // where PATH is
};

} // namespace mr
