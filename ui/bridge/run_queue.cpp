#include "bridge/run_queue.h"

#include <utility>

namespace mr::ui {

RunQueue::RunQueue(SessionController& controller, QObject* parent)
    : QObject(parent)
    , m_controller(controller)
{
    // Queued: the controller's other listeners finish with one run before the next begins.
    connect(&controller, &SessionController::runStarted, this, &RunQueue::onStarted,
        Qt::QueuedConnection);
    connect(
        &controller, &SessionController::runEnded, this,
        [this](qint64, RunState state, const QString& message) { onEnded(state, message); },
        Qt::QueuedConnection);
    connect(
        &controller, &SessionController::failed, this,
        [this](const QString& message) { onEnded(RunState::Failed, message); },
        Qt::QueuedConnection);
}

bool RunQueue::start(std::vector<RunSpec> runs)
{
    if (active() || runs.empty() || !m_controller.open(runs.front()))
        return false;
    m_runs = std::move(runs);
    m_position = 0;
    return true;
}

void RunQueue::clear()
{
    m_runs.clear();
}

QString RunQueue::nextName() const
{
    return m_position + 1 < m_runs.size() ? QString::fromStdString(m_runs[m_position + 1].name)
                                          : QString();
}

void RunQueue::onStarted(qint64 runId)
{
    if (active())
        emit started(runId, static_cast<int>(m_position));
}

void RunQueue::onEnded(RunState state, const QString& message)
{
    if (!active())
        return;
    // A stop that came during the last step ends a finished run, and was still meant.
    if (state == RunState::Finished && m_controller.stopRequested())
        state = RunState::Stopped;
    const QString next = nextName();
    if (!next.isEmpty() && state == RunState::Finished &&
        m_controller.open(m_runs[m_position + 1])) {
        ++m_position;
        return;
    }
    const QString before = QString::fromStdString(m_runs[m_position].name);
    m_runs.clear();
    if (!next.isEmpty())
        emit dropped(next, before, state, message);
}

} // namespace mr::ui
