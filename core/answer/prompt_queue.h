// Questions to a run that goes on, until the engine comes to the end of a step.
//
// Threads  Any.
// Errors   push(): InvalidArgument once the run has ended, or while too many wait.

#pragma once

#include <millrace/session.h>

#include <deque>
#include <mutex>
#include <optional>

namespace mr {

class PromptQueue
{
public:
    static constexpr std::size_t kMost = 16;

    Status push(Question question);
    std::optional<Question> take();
    // Drops those that wait, and asks for the end of the answer that is being given.
    void cancel() noexcept;
    // Whether that was asked for since the last take().
    bool isCancelled() const;
    // Nothing is taken in any more; those that still waited.
    std::deque<Question> close();

private:
    mutable std::mutex m_mutex;
    // Guarded by m_mutex.
    std::deque<Question> m_waiting;
    bool m_isCancelled = false;
    bool m_isClosed = false;
};

} // namespace mr
