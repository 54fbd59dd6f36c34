#include "core/answer/prompt_queue.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace mr {

Status PromptQueue::push(Question question)
{
    const std::lock_guard lock(m_mutex);
    if (m_isClosed)
        return Status::error(
            ErrorKind::InvalidArgument, "the run has ended; ask its model instead");
    if (m_waiting.size() >= kMost)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{} questions wait for the end of the step; ask again after it", kMost));
    m_waiting.push_back(std::move(question));
    return {};
}

std::optional<Question> PromptQueue::take()
{
    const std::lock_guard lock(m_mutex);
    m_isCancelled = false;
    if (m_waiting.empty())
        return std::nullopt;
    Question next = std::move(m_waiting.front());
    m_waiting.pop_front();
    return next;
}

void PromptQueue::cancel() noexcept
{
    const std::lock_guard lock(m_mutex);
    m_waiting.clear();
    m_isCancelled = true;
}

bool PromptQueue::isCancelled() const
{
    const std::lock_guard lock(m_mutex);
    return m_isCancelled;
}

std::deque<Question> PromptQueue::close()
{
    const std::lock_guard lock(m_mutex);
    m_isClosed = true;
    return std::exchange(m_waiting, {});
}

} // namespace mr
