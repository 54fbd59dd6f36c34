// TryAsker: one prompt, asked of two models one after the other, off the UI thread.
//
// A model folder answers on a worker. The run that goes on answers at the end of a step: the
// question goes in through the session, the answer is read from the run store.
//
// Threads    UI thread; signals are emitted there. Answers that come on the worker are looked at by
//            a timer, so a fast model costs one repaint in 50 ms.
// Ownership  Owns its worker; the destructor stops an answer and waits for it.
// Errors     In the state of the answer, as a sentence.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"

#include <QFuture>
#include <QObject>
#include <QString>
#include <QTimer>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace mr::ui {

// The model or run that a column asks.
struct TryTarget {
    std::string path;   // folder of a model, a checkpoint or a run; empty and no run: nobody
    qint64 liveRun = 0; // the run that goes on

    bool isNobody() const { return path.empty() && liveRun == 0; }
};

// How the run that goes on is asked.
struct LiveRun {
    std::function<Status(const Question&)> ask;
    std::function<void()> stop;
};

struct TryProgress {
    enum class State { Idle, Waiting, Loading, Answering, Done, Stopped, Failed };
    State state = State::Idle;
    Answer answer;
    qint64 step = -1; // the live run's, behind which it was asked
    QString error;
};

class TryAsker final : public QObject
{
    Q_OBJECT

public:
    static constexpr int kColumns = 2;

    explicit TryAsker(UiServices services, QObject* parent = nullptr);
    ~TryAsker() override;

    void setLiveRun(LiveRun live) { m_live = std::move(live); }
    // The run has ended: an answer of it that is not in the store soon never comes.
    void runEnded() { m_pollsLeft = kPollsAfterEnd; }

    // Does nothing while it is busy.
    void ask(const Prompt& prompt, const std::array<TryTarget, kColumns>& targets);
    void stop();
    bool busy() const { return m_column < kColumns; }

signals:
    void changed(int column, const mr::ui::TryProgress& progress);
    void busyChanged(bool busy);

private:
    static constexpr int kPollsAfterEnd = 10;
    static constexpr int kPollsForever = -1;
    struct Stream; // the worker's answer so far

    void next();
    void askModel(const std::string& path);
    void askRun(qint64 runId);
    void look();
    void lookAtModel();
    void lookAtRun();
    void showAnswer(const Result<std::vector<AnswerRow>>& rows);
    void finish(TryProgress::State state, const QString& error = {});

    UiServices m_services;
    LiveRun m_live;
    Prompt m_prompt;
    std::array<TryTarget, kColumns> m_targets;
    int m_column = kColumns; // the one asked now; kColumns: none
    TryProgress m_progress;
    QTimer m_timer;
    std::shared_ptr<Stream> m_stream;
    QFuture<Status> m_worker;
    LatestOnly<Result<std::vector<AnswerRow>>> m_reader;
    qint64 m_questionId = 0;
    int m_pollsLeft = kPollsForever;
    bool m_stopped = false;
};

} // namespace mr::ui

Q_DECLARE_METATYPE(mr::ui::TryProgress)
