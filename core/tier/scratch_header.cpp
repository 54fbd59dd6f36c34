#include "core/tier/scratch_header.h"

#include "core/tier/disk_layout.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace mr {
namespace {

constexpr std::array<char, 8> kMagic = {'M', 'R', 'S', 'C', 'R', 'A', 'T', 'C'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kRunIdBytes = 64;

struct alignas(kDiskPageBytes) Page {
    std::array<char, 8> magic{};
    std::uint32_t version = 0;
    std::uint32_t index = 0;
    std::array<char, kRunIdBytes> runId{}; // filled with zeros
    std::uint64_t bytes = 0;
    std::uint64_t layoutHash = 0;
    std::uint64_t filled = 0;
    std::uint64_t checksum = 0; // hash of the page with this field zero
    std::array<std::byte, kDiskPageBytes - kRunIdBytes - 48> rest{};
};
static_assert(sizeof(Page) == kDiskPageBytes);

std::uint64_t checksumOf(const Page& page)
{
    Page copy = page;
    copy.checksum = 0;
    return XXH3_64bits(&copy, sizeof(copy));
}

std::array<char, kRunIdBytes> fixedRunId(const std::string& runId)
{
    std::array<char, kRunIdBytes> out{};
    std::memcpy(out.data(), runId.data(), std::min(runId.size(), out.size()));
    return out;
}

} // namespace

Status scratchError(const std::string& what, const std::filesystem::path& path, int error)
{
    return Status::error(
        ErrorKind::Io, what + " " + path.string() + ": " + std::generic_category().message(error));
}

Result<ScratchHeader> readScratchHeader(
    int descriptor, const std::filesystem::path& path, const ScratchSpec& spec)
{
    Page page;
    ssize_t got = -1;
    do {
        got = ::pread(descriptor, &page, sizeof(page), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return scratchError("cannot read the header of", path, errno);
    if (got == 0)
        return ScratchHeader{ScratchHeaderKind::Empty, 0, false};
    if (static_cast<std::size_t>(got) < sizeof(kMagic) || page.magic != kMagic)
        return ScratchHeader{};
    const bool whole = got == static_cast<ssize_t>(sizeof(page)) && page.version == kVersion &&
                       page.checksum == checksumOf(page);
    const bool same = whole && page.runId == fixedRunId(spec.runId) &&
                      page.index == static_cast<std::uint32_t>(spec.index);
    if (!same)
        return ScratchHeader{ScratchHeaderKind::Stale, 0, false};
    return ScratchHeader{ScratchHeaderKind::Ours, page.bytes, page.filled == 1};
}

Status writeScratchHeader(
    int descriptor, const std::filesystem::path& path, const ScratchSpec& spec, bool filled)
{
    Page page;
    page.magic = kMagic;
    page.version = kVersion;
    page.index = static_cast<std::uint32_t>(spec.index);
    page.runId = fixedRunId(spec.runId);
    page.bytes = spec.bytes;
    page.layoutHash = spec.layoutHash;
    page.filled = filled ? 1 : 0;
    page.checksum = checksumOf(page);
    ssize_t put = -1;
    do {
        put = ::pwrite(descriptor, &page, sizeof(page), 0);
    } while (put < 0 && errno == EINTR);
    if (put != static_cast<ssize_t>(sizeof(page)))
        return scratchError("cannot write the header of", path, put < 0 ? errno : EIO);
    if (::fdatasync(descriptor) != 0)
        return scratchError("cannot bring to the disk the header of", path, errno);
    return {};
}

} // namespace mr
