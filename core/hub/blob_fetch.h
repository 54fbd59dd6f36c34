// BlobFetch: the bytes of one file, taken up where an earlier download stopped.
//
// Every byte is hashed on its way to the disk, those of the earlier download when it is taken up.
// No header of a hub is trusted with the question whether the bytes are right: a range that is not
// the one asked for, a length that is not the listed one and a hash that differs are all refused.
//
// Threads  One thread, under the BlobLock of its file.
// Errors   Io of the disk, DataCorrupt of the bytes; the incomplete file stays unless it is wrong.

#pragma once

#include "core/base/file.h"
#include "core/hub/hub_client.h"
#include "core/hub/hub_hash.h"

#include <millrace/hub.h>
#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace mr {

class BlobFetch final : public HubBody
{
public:
    // `count` is called with the change of the bytes that are there.
    BlobFetch(
        HubFile file, std::filesystem::path incomplete, std::function<void(std::int64_t)> count);

    // Hashes what is there. First for good.
    Status takeUp(const std::stop_token& stop);
    bool isComplete() const noexcept { return m_at == m_file.bytes; }
    // Bytes of an earlier download, or of more than one answer, are among them.
    bool isPieced() const noexcept { return m_isPieced; }
    // Brings the bytes to the disk. False, and the file is removed: the hash is another.
    Result<bool> check();
    Status startAnew();

    std::vector<HttpHeader> headers() const override;
    Status head(const HubReply& reply) override;
    Status body(std::span<const std::byte> piece) override;
    Status end() override;
    bool wantsAnotherTry() const override { return m_wantsAnotherTry; }
    bool isWhole() const override { return isComplete(); }
    std::uint64_t receivedBytes() const override { return m_received; }

private:
    Status again(const std::string& message);
    Status wrong(const std::string& message) const;
    Status checkRange(const HubReply& reply);
    void remove();

    const HubFile m_file;
    const std::filesystem::path m_path;
    const std::function<void(std::int64_t)> m_count;
    File m_out;
    std::optional<HubHash> m_hash;
    std::uint64_t m_at = 0;       // bytes in the file, all of them hashed
    std::uint64_t m_received = 0; // in all tries
    bool m_isPieced = false;
    bool m_wantsAnotherTry = false;
    std::string m_host; // of the last answer
};

} // namespace mr
