#include "bridge/try_asker.h"

#include <QRandomGenerator>
#include <QtConcurrentRun>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

namespace mr::ui {

namespace {

constexpr int kModelLookMs = 50;
constexpr int kRunLookMs = 200;

} // namespace

struct TryAsker::Stream {
    std::mutex mutex;
    Answer answer; // guarded by mutex
    bool isRead = false;
    std::atomic<bool> stop = false;
};

TryAsker::TryAsker(UiServices services, QObject* parent)
    : QObject(parent)
    , m_services(std::move(services))
{
    qRegisterMetaType<TryProgress>();
    connect(&m_timer, &QTimer::timeout, this, &TryAsker::look);
}

TryAsker::~TryAsker()
{
    if (m_stream)
        m_stream->stop = true;
    m_worker.waitForFinished(); // it uses the objects that the services capture
}

void TryAsker::ask(const Prompt& prompt, const std::array<TryTarget, kColumns>& targets)
{
    if (busy())
        return;
    m_prompt = prompt;
    m_targets = targets;
    m_stopped = false;
    m_column = -1;
    for (int column = 0; column < kColumns; ++column) {
        const bool isAsked = !targets.at(static_cast<std::size_t>(column)).isNobody();
        TryProgress progress;
        progress.state = isAsked ? TryProgress::State::Waiting : TryProgress::State::Idle;
        emit changed(column, progress);
    }
    emit busyChanged(true);
    next();
}

void TryAsker::stop()
{
    if (!busy())
        return;
    m_stopped = true;
    if (m_stream)
        m_stream->stop = true;
    if (m_targets.at(static_cast<std::size_t>(m_column)).liveRun == 0)
        return;
    if (m_live.stop)
        m_live.stop();
    if (m_progress.state == TryProgress::State::Waiting)
        finish(TryProgress::State::Stopped); // it waits no more, so no answer will be written
}

void TryAsker::next()
{
    m_progress = {};
    while (++m_column < kColumns) {
        const TryTarget& target = m_targets.at(static_cast<std::size_t>(m_column));
        if (target.isNobody())
            continue;
        if (m_stopped) {
            m_progress.state = TryProgress::State::Stopped;
            emit changed(m_column, m_progress);
            continue;
        }
        target.liveRun == 0 ? askModel(target.path) : askRun(target.liveRun);
        return;
    }
    emit busyChanged(false);
}

void TryAsker::askModel(const std::string& path)
{
    m_progress.state = TryProgress::State::Loading;
    emit changed(m_column, m_progress);
    m_stream = std::make_shared<Stream>();
    m_worker = QtConcurrent::run(
        [stream = m_stream, answer = m_services.answer, prompt = m_prompt, path]() -> Status {
            AnswerWatch watch;
            std::chrono::steady_clock::time_point begun;
            watch.onRead = [&](const Answer& read) {
                const std::scoped_lock lock(stream->mutex);
                stream->answer = read;
                stream->isRead = true;
            };
            watch.onText = [&](std::string_view piece) {
                const std::scoped_lock lock(stream->mutex);
                const auto now = std::chrono::steady_clock::now();
                if (stream->answer.tokens++ == 0)
                    begun = now;
                stream->answer.seconds = std::chrono::duration<double>(now - begun).count();
                stream->answer.text += piece;
                return !stream->stop;
            };
            Result<Answer> made = answer(path, prompt, watch);
            MR_TRY(made.status());
            const std::scoped_lock lock(stream->mutex);
            stream->answer = std::move(made).value();
            return {};
        });
    m_timer.start(kModelLookMs);
}

void TryAsker::askRun(qint64 runId)
{
    Q_UNUSED(runId)
    m_progress.state = TryProgress::State::Waiting;
    emit changed(m_column, m_progress);
    m_questionId = static_cast<qint64>(QRandomGenerator::global()->generate64() >> 1U);
    m_pollsLeft = kPollsForever;
    const Question question{m_questionId, m_prompt};
    const Status asked = m_live.ask ? m_live.ask(question)
                                    : Status::error(ErrorKind::InvalidArgument,
                                          tr("The run has ended.").toStdString());
    if (!asked.ok())
        finish(TryProgress::State::Failed, QString::fromStdString(asked.message()));
    else
        m_timer.start(kRunLookMs);
}

void TryAsker::look()
{
    if (!busy())
        m_timer.stop();
    else if (m_targets.at(static_cast<std::size_t>(m_column)).liveRun == 0)
        lookAtModel();
    else
        lookAtRun();
}

void TryAsker::lookAtModel()
{
    const bool isFinished = m_worker.isFinished(); // before the answer is copied
    {
        const std::scoped_lock lock(m_stream->mutex);
        if (m_stream->isRead && m_progress.state == TryProgress::State::Loading &&
            m_stream->answer.tokens > 0)
            m_progress.state = TryProgress::State::Answering;
        m_progress.answer = m_stream->answer;
    }
    if (!isFinished) {
        emit changed(m_column, m_progress);
        return;
    }
    const Status status = m_worker.result();
    if (!status.ok())
        finish(TryProgress::State::Failed, QString::fromStdString(status.message()));
    else
        finish(m_stream->stop && !m_progress.answer.ended ? TryProgress::State::Stopped
                                                          : TryProgress::State::Done);
}

void TryAsker::lookAtRun()
{
    if (m_reader.busy())
        return;
    const qint64 runId = m_targets.at(static_cast<std::size_t>(m_column)).liveRun;
    m_reader.ask(
        [open = m_services.openReader, database = m_services.database,
            runId]() -> Result<std::vector<AnswerRow>> {
            Result<std::unique_ptr<RunReader>> reader = open(database);
            MR_TRY(reader.status());
            return reader.value()->answers(runId);
        },
        [this](const Result<std::vector<AnswerRow>>& rows) { showAnswer(rows); });
}

void TryAsker::showAnswer(const Result<std::vector<AnswerRow>>& rows)
{
    if (!busy() || m_targets.at(static_cast<std::size_t>(m_column)).liveRun == 0)
        return;
    if (!rows.ok()) {
        finish(TryProgress::State::Failed, QString::fromStdString(rows.status().message()));
        return;
    }
    const std::vector<AnswerRow> all = Result(rows).value();
    const auto found = std::find_if(
        all.begin(), all.end(), [this](const AnswerRow& row) { return row.id == m_questionId; });
    if (found != all.end()) {
        m_progress.answer = found->answer;
        m_progress.step = found->step;
        m_progress.state = TryProgress::State::Answering;
        if (found->state == AnswerState::Failed)
            finish(TryProgress::State::Failed, QString::fromStdString(found->message));
        else if (found->state != AnswerState::Running)
            finish(found->state == AnswerState::Done ? TryProgress::State::Done
                                                     : TryProgress::State::Stopped);
        else
            emit changed(m_column, m_progress);
    }
    if (m_pollsLeft > 0 && --m_pollsLeft == 0)
        finish(TryProgress::State::Failed, tr("The run has ended."));
}

void TryAsker::finish(TryProgress::State state, const QString& error)
{
    m_timer.stop();
    m_reader.cancel();
    m_pollsLeft = kPollsForever;
    m_progress.state = state;
    m_progress.error = error;
    emit changed(m_column, m_progress);
    next();
}

} // namespace mr::ui
