// PauseGate: where a paused run waits for an answer, for the time to look again, or for its end.
//
// Threads  wait(), open(), close(): engine thread. answer(), stop(): any; they never block for
//          long.
// Order    Answers are taken in the order they came. One that is given while nobody asks is
//          dropped: open() begins with none.

#pragma once

#include <millrace/session.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace mr {

class PauseGate
{
public:
    void open();  // answers are taken from here on
    void close(); // and dropped from here on

    // Empty: `most` has passed, or a stop was asked for.
    std::optional<PauseAnswer> wait(std::chrono::milliseconds most);

    void answer(PauseAnswer answer);
    void stop() noexcept; // for good: nothing waits any more
    bool isStopped() const;

private:
    mutable std::mutex m_mutex;
    std::condition_variable m_wake;
    // Guarded by m_mutex.
    std::deque<PauseAnswer> m_answers;
    bool m_isOpen = false;
    bool m_isStopped = false;
};

} // namespace mr
