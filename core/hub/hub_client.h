// HubClient: asks a hub for one thing until it is there or cannot be had.
//
// It follows redirects, sends the token to the hub alone, waits and tries again where that may
// help.
//
// Threads    Any; a HubBody belongs to one call.
// Ownership  The transport outlives the client.
// Errors     Sentences of hub_answers.h; Cancelled once the stop token asks for it.

#pragma once

#include "core/hub/http_transport.h"
#include "core/hub/hub_answers.h"
#include "core/hub/hub_endpoint.h"

#include <millrace/status.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace mr {

struct HubLimits {
    int attempts = 5; // in a row that bring nothing
    int redirects = 10;
    std::chrono::milliseconds firstWait{1000};
    std::chrono::milliseconds longestWait{30'000};
    std::chrono::milliseconds longestRetryAfter{300'000}; // together, of one request
    std::chrono::milliseconds stall{60'000};
};

using HubNote = std::function<void(const std::string& text)>;

// The last answer behind all redirects: 200, 206 or 416.
struct HubReply {
    HttpHead head;
    std::string host;
    std::string namedHash; // the hub's own word for what the file is; empty: none
};

// Takes an answer, over several tries.
class HubBody
{
public:
    virtual ~HubBody() = default;
    virtual std::vector<HttpHeader> headers() const = 0; // of the next try
    // An error ends the try; another one follows where wantsAnotherTry() says so.
    virtual Status head(const HubReply& reply) = 0;
    virtual Status body(std::span<const std::byte> piece) = 0;
    virtual Status end() = 0; // after the last byte
    virtual bool wantsAnotherTry() const = 0;
    // All bytes are here, although the answer did not end as it should.
    virtual bool isWhole() const { return false; }
    virtual std::uint64_t receivedBytes() const = 0; // in all tries
};

class HubClient
{
public:
    // Notes come on the thread of their get().
    HubClient(HttpTransport& transport, HubEndpoint endpoint, const HubLimits& limits, HubNote note,
        std::stop_token stop);

    const HubEndpoint& endpoint() const noexcept { return m_endpoint; }
    // `address` begins with a slash.
    Status get(const HubSubject& subject, const std::string& address, HubBody& body);

private:
    struct Try {
        Status status;
        bool again = false;
        std::optional<std::chrono::seconds> wait{}; // as the hub asks for
    };
    class Relay;

    Try tryOnce(const HubSubject& subject, const std::string& address, HubBody& body);
    Try judge(const HubSubject& subject, const HttpOutcome& outcome, const Relay& relay,
        HubBody& body) const;
    Try judgeFault(const HttpOutcome& outcome, const std::string& host) const;
    Try refused(const HubSubject& subject, const Relay& relay) const;
    Result<HttpUrl> follow(const HttpUrl& from, const HttpHead& head);
    Status pause(const Try& failed, int failures, std::chrono::milliseconds& waited) const;

    HttpTransport& m_transport;
    const HubEndpoint m_endpoint;
    const HubLimits m_limits;
    const HubNote m_note;
    const std::stop_token m_stop;
    std::atomic<bool> m_isReached = false; // the network has worked before
    std::mutex m_mutex;
    std::set<std::string> m_hosts; // guarded by m_mutex
};

} // namespace mr
