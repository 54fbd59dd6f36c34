#include "app/net/qt_transport.h"

#include "app/net/exchange.h"
#include "app/net/net_thread.h"

#include <atomic>
#include <span>

namespace mr::app {
namespace {

std::span<const std::byte> bytesOf(const QByteArray& piece)
{
    return std::as_bytes(std::span(piece.constData(), static_cast<std::size_t>(piece.size())));
}

// False: the sink stops the request.
bool give(const Exchange::Next& next, HttpSink& sink)
{
    if (next.sent)
        return sink.sent(*next.sent);
    return next.head ? sink.head(*next.head) : sink.body(bytesOf(next.piece));
}

class QtTransport final : public HttpTransport
{
public:
    HttpOutcome send(
        const HttpRequest& request, HttpSink& sink, const std::stop_token& stop) override
    {
        const std::uint64_t id = ++m_lastId;
        const auto exchange = std::make_shared<Exchange>();
        m_network.start(id, request, exchange);
        while (true) {
            const auto next = exchange->take(request.stall, stop);
            if (!next || stop.stop_requested()) {
                m_network.abort(id);
                return {stop.stop_requested() ? HttpFault::Cancelled : HttpFault::Stalled, {}};
            }
            if (next->outcome)
                return *next->outcome;
            if (!give(*next, sink)) {
                m_network.abort(id);
                return {HttpFault::Stopped, {}};
            }
            if (exchange->room() >= Exchange::kMostBytes / 2)
                m_network.goOn(id);
        }
    }

private:
    std::atomic<std::uint64_t> m_lastId = 0;
    NetThread m_network;
};

} // namespace

std::unique_ptr<HttpTransport> makeQtTransport()
{
    return std::make_unique<QtTransport>();
}

} // namespace mr::app
