// ListBody: the list of a repository's files as it comes, in memory.
//
// Threads  One thread.
// Errors   DataCorrupt: more bytes than kMostHubListBytes. Io: no whole answer.

#pragma once

#include "core/hub/hub_client.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mr {

class ListBody final : public HubBody
{
public:
    const std::string& text() const noexcept { return m_text; }

    std::vector<HttpHeader> headers() const override { return {{"Accept", "application/json"}}; }
    Status head(const HubReply& reply) override;
    Status body(std::span<const std::byte> piece) override;
    Status end() override { return {}; }
    bool wantsAnotherTry() const override { return false; }
    std::uint64_t receivedBytes() const override { return m_received; }

private:
    std::string m_text;
    std::uint64_t m_received = 0;
};

} // namespace mr
