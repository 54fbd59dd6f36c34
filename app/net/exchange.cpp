#include "app/net/exchange.h"

#include <utility>

namespace mr::app {

void Exchange::putSent(std::uint64_t bytes)
{
    const std::scoped_lock lock(m_mutex);
    m_sent = bytes;
    m_news.notify_all();
}

void Exchange::putHead(HttpHead head)
{
    const std::scoped_lock lock(m_mutex);
    m_head = std::move(head);
    m_news.notify_all();
}

void Exchange::putPiece(QByteArray piece)
{
    const std::scoped_lock lock(m_mutex);
    m_bytes += static_cast<std::size_t>(piece.size());
    m_pieces.push_back(std::move(piece));
    m_news.notify_all();
}

void Exchange::end(HttpOutcome outcome)
{
    const std::scoped_lock lock(m_mutex);
    m_outcome = std::move(outcome);
    m_news.notify_all();
}

std::size_t Exchange::room() const
{
    const std::scoped_lock lock(m_mutex);
    return m_bytes >= kMostBytes ? 0 : kMostBytes - m_bytes;
}

std::optional<Exchange::Next> Exchange::take(
    std::chrono::milliseconds stall, const std::stop_token& stop)
{
    std::unique_lock lock(m_mutex);
    if (!m_news.wait_for(lock, stop, stall, [this] { return hasNews(); }))
        return std::nullopt;
    Next next;
    if (m_sent) {
        next.sent = std::exchange(m_sent, std::nullopt);
    } else if (m_head) {
        next.head = std::exchange(m_head, std::nullopt);
    } else if (!m_pieces.empty()) {
        next.piece = std::move(m_pieces.front());
        m_pieces.pop_front();
        m_bytes -= static_cast<std::size_t>(next.piece.size());
    } else {
        next.outcome = m_outcome;
    }
    return next;
}

} // namespace mr::app
