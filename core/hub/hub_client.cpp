#include "core/hub/hub_client.h"

#include "core/base/clock.h"
#include "core/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace mr {
namespace {

constexpr std::uint64_t kProgressBytes = 1U << 20; // fewer in a try are none
constexpr int kMostTries = 200;
constexpr std::size_t kMostIgnoredBytes = 64U << 10; // of a page that tells people of an error

bool isRedirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool isTaken(int status)
{
    return status == 200 || status == 206 || status == 416;
}

bool mayPass(int status)
{
    return status == 408 || status == 429 || status >= 500;
}

Status badRedirect(const HttpUrl& from, const std::string& what)
{
    return Status::error(ErrorKind::Io, from.shownHost() + " " + what);
}

} // namespace

// Hands the body of a file or list on, and swallows that of redirects and errors.
class HubClient::Relay final : public HttpSink
{
public:
    Relay(HubBody& body, const HttpUrl& url, const HttpUrl& hub, std::string namedHash)
        : m_body(body)
        , m_isHub(url.sameOrigin(hub))
        , m_reply{{}, url.shownHost(), std::move(namedHash)}
    {
    }

    bool head(const HttpHead& head) override
    {
        m_reply.head = head;
        if (m_isHub) {
            if (const auto linked = headerOf(head, "x-linked-etag"))
                m_reply.namedHash = etagText(*linked);
            else if (const auto own = headerOf(head, "etag"); own && !isRedirect(head.status))
                m_reply.namedHash = etagText(*own);
        }
        if (isTaken(head.status))
            m_status = m_body.head(m_reply);
        return m_status.ok();
    }

    bool body(std::span<const std::byte> piece) override
    {
        if (!isTaken(m_reply.head.status)) {
            m_ignored += piece.size();
            return m_ignored <= kMostIgnoredBytes;
        }
        m_status = m_body.body(piece);
        return m_status.ok();
    }

    const HubReply& reply() const noexcept { return m_reply; }
    const Status& status() const noexcept { return m_status; }

private:
    HubBody& m_body;
    const bool m_isHub;
    HubReply m_reply;
    Status m_status; // of the body
    std::size_t m_ignored = 0;
};

HubClient::HubClient(HttpTransport& transport, HubEndpoint endpoint, const HubLimits& limits,
    HubNote note, std::stop_token stop)
    : m_transport(transport)
    , m_endpoint(std::move(endpoint))
    , m_limits(limits)
    , m_note(std::move(note))
    , m_stop(std::move(stop))
    , m_hosts{m_endpoint.url.shownHost()}
{
}

Status HubClient::get(const HubSubject& subject, const std::string& address, HubBody& body)
{
    std::chrono::milliseconds waited{0};
    int failures = 0;
    for (int tries = 1;; ++tries) {
        const std::uint64_t before = body.receivedBytes();
        const Try done = tryOnce(subject, address, body);
        if (done.status.ok() || !done.again)
            return done.status;
        failures = body.receivedBytes() >= before + kProgressBytes ? 1 : failures + 1;
        if (failures >= m_limits.attempts || tries >= kMostTries)
            return Status::error(done.status.kind(),
                fmt::format("{} (tried {} times)", done.status.message(), tries));
        MR_TRY(pause(done, failures, waited));
    }
}

HubClient::Try HubClient::tryOnce(
    const HubSubject& subject, const std::string& address, HubBody& body)
{
    auto start = parseUrl(m_endpoint.addressOf(address));
    if (!start.ok())
        return {start.status()};
    HttpUrl url = std::move(start).value();
    std::string namedHash;
    for (int hop = 0; hop <= m_limits.redirects; ++hop) {
        HttpRequest request{url.text(), body.headers(), m_limits.stall};
        request.headers.push_back({"Accept-Encoding", "identity"}); // lengths are those of files
        if (!m_endpoint.token.empty() && url.sameOrigin(m_endpoint.url))
            request.headers.push_back({"Authorization", "Bearer " + m_endpoint.token});
        Relay relay(body, url, m_endpoint.url, namedHash);
        const HttpOutcome outcome = m_transport.send(request, relay, m_stop);
        m_isReached = m_isReached || relay.reply().head.status != 0;
        if (m_stop.stop_requested())
            return {hubFault({HttpFault::Cancelled, {}}, {}, {})};
        if (!isRedirect(relay.reply().head.status))
            return judge(subject, outcome, relay, body);
        namedHash = relay.reply().namedHash;
        auto next = follow(url, relay.reply().head);
        if (!next.ok())
            return {next.status()};
        url = std::move(next).value();
    }
    return {badRedirect(m_endpoint.url,
        fmt::format("redirects more than {} times, perhaps in a circle; check HF_ENDPOINT, or try "
                    "later",
            m_limits.redirects))};
}

Result<HttpUrl> HubClient::follow(const HttpUrl& from, const HttpHead& head)
{
    const auto location = headerOf(head, "location");
    if (!location)
        return badRedirect(from, "redirects without saying where to; try later");
    auto resolved = resolveUrl(from, *location);
    if (!resolved.ok())
        return badRedirect(from, "redirects wrongly: " + resolved.status().message());
    const HttpUrl url = std::move(resolved).value();
    if (from.isSecure() && !url.isSecure())
        return badRedirect(from, "redirects from https to http, to " + shownName(url.shownHost()) +
                                     ", where others could read and change what is sent; it is "
                                     "refused: check HF_ENDPOINT");
    if (isLoopback(url) && !isLoopback(m_endpoint.url))
        return badRedirect(from, "redirects to this machine itself (" + url.shownHost() +
                                     "), which no hub does; it is refused: check HF_ENDPOINT");
    const std::scoped_lock lock(m_mutex);
    if (m_hosts.insert(url.shownHost()).second)
        m_note(from.shownHost() + " hands files out through " + url.shownHost() +
               (m_endpoint.token.empty() ? "" : ", which gets no token"));
    return url;
}

HubClient::Try HubClient::judge(
    const HubSubject& subject, const HttpOutcome& outcome, const Relay& relay, HubBody& body) const
{
    const int status = relay.reply().head.status;
    if (!relay.status().ok())
        return {relay.status(), body.wantsAnotherTry()};
    if (status != 0 && !isTaken(status))
        return refused(subject, relay);
    if (status == 0 || (outcome.fault != HttpFault::None && !body.isWhole()))
        return judgeFault(outcome, relay.reply().host);
    const Status end = body.end();
    return {end, !end.ok() && body.wantsAnotherTry()};
}

HubClient::Try HubClient::judgeFault(const HttpOutcome& outcome, const std::string& host) const
{
    const bool isLine = outcome.fault == HttpFault::Host || outcome.fault == HttpFault::Refused;
    const bool again = isLine ? m_isReached.load() : outcome.fault != HttpFault::Tls;
    return {hubFault(outcome, host, m_limits.stall), again};
}

HubClient::Try HubClient::refused(const HubSubject& subject, const Relay& relay) const
{
    const HubReply& reply = relay.reply();
    Try made{hubRefusal(subject, m_endpoint, reply.host, reply.head), mayPass(reply.head.status)};
    if (const auto after = headerOf(reply.head, "retry-after"); after && made.again)
        made.wait = parseRetryAfter(*after, unixMs() / 1000);
    return made;
}

Status HubClient::pause(const Try& failed, int failures, std::chrono::milliseconds& waited) const
{
    auto wait =
        std::min(m_limits.firstWait * (1 << std::min(failures - 1, 10)), m_limits.longestWait);
    if (failed.wait) {
        if (*failed.wait > m_limits.longestRetryAfter - waited)
            return Status::error(failed.status.kind(),
                fmt::format("{}; it asks to be left alone for {} s, which is too long to wait here",
                    failed.status.message(), failed.wait->count()));
        wait = *failed.wait;
        waited += wait;
    }
    m_note(fmt::format("{}; trying again in {:.3g} s", failed.status.message(),
        static_cast<double>(wait.count()) / 1000.0));
    std::mutex mutex;
    std::condition_variable_any sleeper;
    std::unique_lock lock(mutex);
    (void)sleeper.wait_for(lock, m_stop, wait, [] { return false; });
    return m_stop.stop_requested() ? hubFault({HttpFault::Cancelled, {}}, {}, {}) : Status();
}

} // namespace mr
