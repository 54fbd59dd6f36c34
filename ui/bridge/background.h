// background(): a blocking question asked on a worker, its answer handed to the UI thread.
//
// LatestOnly keeps at most one question in flight: asking again while one runs replaces the one
// that waits, and the answer to a replaced question is dropped. So an edit per key stroke neither
// piles up work nor shows a stale answer.
//
// Threads    Call from the UI thread. `work` runs on QThreadPool::globalInstance(), so it owns the
//            data it uses; `done` runs on the UI thread.
// Lifetime   If `context` (or the LatestOnly) dies first, `done` is never called.

#pragma once

#include <QFutureWatcher>
#include <QObject>
#include <QtConcurrentRun>

#include <functional>
#include <utility>

namespace mr::ui {

template <typename T>
void background(QObject* context, std::function<T()> work, std::function<void(T)> done)
{
    auto* watcher = new QFutureWatcher<T>(context);
    QObject::connect(
        watcher, &QFutureWatcherBase::finished, context, [watcher, done = std::move(done)] {
            watcher->deleteLater();
            done(watcher->future().takeResult());
        });
    watcher->setFuture(QtConcurrent::run(std::move(work)));
}

template <typename T>
class LatestOnly
{
public:
    void ask(std::function<T()> work, std::function<void(T)> done)
    {
        ++m_wanted;
        m_next = std::move(work);
        m_done = std::move(done);
        if (!m_busy)
            startNext();
    }

    // Answers still on their way are dropped.
    void cancel()
    {
        ++m_wanted;
        m_next = nullptr;
    }

    bool busy() const { return m_busy; }

private:
    void startNext()
    {
        m_busy = true;
        const int asked = m_wanted;
        background<T>(&m_context, std::exchange(m_next, nullptr), [this, asked](T answer) {
            m_busy = false;
            if (asked == m_wanted) {
                // `done` may ask again and so replace m_done.
                const auto call = m_done;
                call(std::move(answer));
            } else if (m_next) {
                startNext();
            }
        });
    }

    QObject m_context;
    std::function<T()> m_next;
    std::function<void(T)> m_done;
    int m_wanted = 0;
    bool m_busy = false;
};

} // namespace mr::ui
