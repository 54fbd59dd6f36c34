// Exchange: one request between the thread that waits for it and the thread of the network.
//
// Memory is bounded: past a mebibyte the network's side stops reading, and the sender waits.
//
// Threads    The waiting thread takes, the network's thread puts. Shared by both.
// Order      Bytes that were sent, the head, pieces, the end.

#pragma once

#include "core/hub/http_transport.h"

#include <QByteArray>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>

namespace mr::app {

class Exchange
{
public:
    static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

    // The network's side.
    void putSent(std::uint64_t bytes); // the last word on it replaces an earlier one
    void putHead(HttpHead head);
    void putPiece(QByteArray piece);
    void end(HttpOutcome outcome);
    std::size_t room() const; // bytes that may be put now

    // The waiting side: the next thing. Nothing: nothing came in time, or it was asked to stop.
    struct Next {
        std::optional<std::uint64_t> sent{};
        std::optional<HttpHead> head{};
        QByteArray piece{};
        std::optional<HttpOutcome> outcome{};
    };
    std::optional<Next> take(std::chrono::milliseconds stall, const std::stop_token& stop);

private:
    bool hasNews() const { return m_sent || m_head || !m_pieces.empty() || m_outcome; }

    mutable std::mutex m_mutex;
    std::condition_variable_any m_news;
    std::optional<std::uint64_t> m_sent; // guarded by m_mutex; so below
    std::optional<HttpHead> m_head;
    std::deque<QByteArray> m_pieces;
    std::size_t m_bytes = 0; // in m_pieces
    std::optional<HttpOutcome> m_outcome;
};

} // namespace mr::app
