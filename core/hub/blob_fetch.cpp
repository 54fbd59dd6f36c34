#include "core/hub/blob_fetch.h"

#include "core/base/shown_text.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace mr {

BlobFetch::BlobFetch(
    HubFile file, std::filesystem::path incomplete, std::function<void(std::int64_t)> count)
    : m_file(std::move(file))
    , m_path(std::move(incomplete))
    , m_count(std::move(count))
{
}

Status BlobFetch::takeUp(const std::stop_token& stop)
{
    MR_ASSIGN(m_out, File::openAppend(m_path));
    MR_ASSIGN(const std::uint64_t bytes, m_out.bytes());
    if (bytes > m_file.bytes)
        return startAnew();
    MR_ASSIGN(m_hash, HubHash::begin(m_file));
    MR_TRY(addFile(*m_hash, m_path, bytes, untilStopped(stop)));
    m_at = bytes;
    m_isPieced = bytes > 0;
    m_count(static_cast<std::int64_t>(bytes));
    return {};
}

Status BlobFetch::startAnew()
{
    m_count(-static_cast<std::int64_t>(m_at));
    m_at = 0;
    m_isPieced = false;
    MR_ASSIGN(m_out, File::create(m_path));
    MR_ASSIGN(m_hash, HubHash::begin(m_file));
    return {};
}

Result<bool> BlobFetch::check()
{
    MR_TRY(m_out.sync());
    MR_ASSIGN(const std::string hash, m_hash->end());
    if (hash == m_file.hash)
        return true;
    remove();
    return false;
}

void BlobFetch::remove()
{
    std::error_code ignored;
    m_out = File();
    std::filesystem::remove(m_path, ignored);
}

std::vector<HttpHeader> BlobFetch::headers() const
{
    if (m_at == 0)
        return {};
    return {{"Range", fmt::format("bytes={}-", m_at)}};
}

Status BlobFetch::again(const std::string& message)
{
    m_wantsAnotherTry = true;
    return Status::error(ErrorKind::Io, message);
}

Status BlobFetch::wrong(const std::string& message) const
{
    return Status::error(ErrorKind::DataCorrupt,
        fmt::format("{}: file {}: {}", m_host, shownName(m_file.path), message));
}

// Only the hub's own word counts: the ETag of a storage behind it is of another kind. The file's
// name is its hash, so a changed file is another file and never goes on from these bytes.
Status BlobFetch::head(const HubReply& reply)
{
    m_wantsAnotherTry = false;
    m_host = reply.host;
    if (reply.namedHash.size() == m_file.hash.size() && reply.namedHash != m_file.hash)
        return wrong(
            "it is another one than the list says; use the same command again, and if that "
            "does not help, tell the hub");
    if (reply.head.status != 200) // a range, or a refusal of one
        return checkRange(reply);
    if (const auto length = contentLength(reply.head); length && *length != m_file.bytes)
        return wrong(
            fmt::format("it has {} bytes, and the list says {}; use the same command again, "
                        "and if that does not help, tell the hub",
                *length, m_file.bytes));
    return m_at > 0 ? startAnew() : Status();
}

Status BlobFetch::checkRange(const HubReply& reply)
{
    const auto range = parseContentRange(headerOf(reply.head, "content-range").value_or(""));
    const bool isAsked = reply.head.status == 206 && m_at > 0 && range && range->first == m_at &&
                         range->last + 1 == m_file.bytes &&
                         range->total.value_or(m_file.bytes) == m_file.bytes;
    if (isAsked && contentLength(reply.head).value_or(m_file.bytes - m_at) == m_file.bytes - m_at) {
        m_isPieced = true;
        return {};
    }
    MR_TRY(startAnew());
    return again(fmt::format("{} sends another part of {} than was asked for, so that file begins "
                             "anew",
        m_host, shownName(m_file.path)));
}

Status BlobFetch::body(std::span<const std::byte> piece)
{
    m_received += piece.size();
    if (piece.size() > m_file.bytes - m_at) {
        m_count(-static_cast<std::int64_t>(m_at));
        m_at = 0;
        remove();
        return wrong(
            fmt::format("more bytes come than the {} that the list says; they were removed. "
                        "Use the same command again, and if that does not help, tell the hub",
                m_file.bytes));
    }
    if (const Status written = m_out.write(piece); !written.ok())
        return Status::error(
            written.kind(), written.message() + kHubGoesOn); // a part of it may be in the file
    MR_TRY(m_hash->add(piece));
    m_at += piece.size();
    m_count(static_cast<std::int64_t>(piece.size()));
    return {};
}

Status BlobFetch::end()
{
    if (isComplete())
        return {};
    return again(fmt::format("{} ended {} early, at byte {} of {}{}", m_host,
        shownName(m_file.path), m_at, m_file.bytes, kHubGoesOn));
}

} // namespace mr
