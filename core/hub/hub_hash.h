// HubHash: the hash that a hub names a file by, made piece by piece.
//
// SHA-256 of the bytes for large files; for others git's SHA-1 of "blob LENGTH", a zero byte and
// the bytes.
//
// Threads  One thread.
// Errors   Internal where libcrypto refuses.

#pragma once

#include "core/base/write_progress.h"

#include <millrace/hub.h>
#include <millrace/status.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace mr {

class HubHash
{
public:
    // For a file of that length.
    static Result<HubHash> begin(const HubFile& file);

    Status add(std::span<const std::byte> piece);
    // Lower-case hex. Nothing may be added afterwards.
    Result<std::string> end();

private:
    struct Context;
    struct Free {
        void operator()(Context* context) const noexcept;
    };

    std::unique_ptr<Context, Free> m_context;
};

// Adds the first `bytes` of a file. An error of `progress` ends it.
Status addFile(HubHash& hash, const std::filesystem::path& path, std::uint64_t bytes,
    const WriteProgress& progress);
// Never tells anything, and is Cancelled once `stop` asks for it.
WriteProgress untilStopped(const std::stop_token& stop);

// Whether the file at `path` has the length and the hash; false where it is not there.
Result<bool> isHubFile(
    const std::filesystem::path& path, const HubFile& file, const std::stop_token& stop);

} // namespace mr
