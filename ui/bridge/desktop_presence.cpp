#include "bridge/desktop_presence.h"

#include "bridge/notifier.h"
#include "models/outcome_words.h"
#include "text/units.h"

#include <QDateTime>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mr::ui {

namespace {

constexpr int kLossDigits = 4;

// `run` has just reached its last step; the history may not say so yet.
QString worseSentence(RunRow run)
{
    run.status = RunStatus::Done;
    return OutcomeWords::sentence(run);
}

} // namespace

DesktopPresence::DesktopPresence(
    SessionController& controller, QObject* parent, const DesktopBuses& buses)
    : QObject(parent)
    , m_controller(controller)
    , m_notifier(new Notifier(buses.session, this))
    , m_sleep(new SleepGuard(buses.system, buses.session, this))
{
    connect(m_notifier, &Notifier::openRequested, this, &DesktopPresence::openRequested);
    connect(m_sleep, &SleepGuard::aboutToSleep, this, &DesktopPresence::onAboutToSleep);
    connect(&controller, &SessionController::phaseChanged, this,
        [this](SessionController::Phase phase) {
            if (phase == SessionController::Phase::Opening)
                m_sleep->hold(tr("A model is being trained."));
            else if (phase == SessionController::Phase::Idle)
                m_sleep->release();
        });
    connect(&controller, &SessionController::runEnded, this, &DesktopPresence::onEnded);
    connect(&controller, &SessionController::failed, this, &DesktopPresence::onFailed);
}

QString DesktopPresence::runName() const
{
    return m_snapshot ? QString::fromStdString(m_snapshot->run.name) : tr("The run");
}

void DesktopPresence::setSnapshot(const RunSnapshotPtr& snapshot)
{
    m_snapshot = snapshot;
    if (!snapshot)
        return;
    followPause(snapshot->run.status == RunStatus::Paused);
    const auto& saved = snapshot->checkpoints;
    const bool isSaved = std::any_of(saved.begin(), saved.end(),
        [this](const CheckpointRow& row) { return row.createdMs >= m_saveAskedMs; });
    if (m_saveAskedMs > 0 && isSaved) {
        m_saveAskedMs = 0;
        m_sleep->letSleep();
    }
}

// A run that waits for its user computes nothing, so the machine may sleep.
void DesktopPresence::followPause(bool isPaused)
{
    if (std::exchange(m_isPaused, isPaused) == isPaused)
        return;
    if (!isPaused) {
        if (m_controller.busy())
            m_sleep->hold(tr("A model is being trained."));
        return;
    }
    m_sleep->release();
    m_notifier->show(m_snapshot->run.id, tr("“%1” is paused").arg(runName()),
        tr("It cannot save, and waits for you. Nothing is lost."));
}

void DesktopPresence::onEnded(qint64 runId, RunState state, const QString& message)
{
    m_isPaused = false;
    m_saveAskedMs = 0;
    const QString name = runName();
    if (state == RunState::Failed) {
        m_notifier->show(runId, tr("“%1” failed").arg(name), message);
    } else if (state == RunState::Finished) {
        QString text;
        if (m_snapshot && m_snapshot->run.totalSteps > 0)
            text = tr("All %1 steps are done.").arg(countText(m_snapshot->run.totalSteps));
        const QString worse = m_snapshot ? worseSentence(m_snapshot->run) : QString();
        if (!worse.isEmpty())
            text += QLatin1Char(' ') + worse;
        else if (m_snapshot && std::isfinite(m_snapshot->run.bestEval))
            text +=
                QLatin1Char(' ') +
                tr("Best evaluation: %1.").arg(numberText(m_snapshot->run.bestEval, kLossDigits));
        m_notifier->show(runId, tr("“%1” is done").arg(name), text.trimmed());
    } else if (runId != 0 && !m_controller.stopRequested()) {
        // Nobody asked for it here.
        m_notifier->show(runId, tr("“%1” was stopped").arg(name), message);
    }
    m_snapshot = nullptr;
}

// Opening a large model takes minutes, in which one goes away.
void DesktopPresence::onFailed(const QString& message)
{
    m_notifier->show(0, tr("The run could not be started"), message);
}

void DesktopPresence::onAboutToSleep()
{
    m_saveAskedMs = QDateTime::currentMSecsSinceEpoch();
    m_controller.saveNow();
}

} // namespace mr::ui
