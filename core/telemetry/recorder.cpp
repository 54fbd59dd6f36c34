#include "core/telemetry/recorder.h"

#include "core/base/log.h"
#include "core/base/spsc_ring.h"
#include "core/base/thread.h"
#include "core/telemetry/history_backlog.h"
#include "core/telemetry/run_logs.h"
#include "core/telemetry/trace_sampler.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSpansPerProducer = 4096;
constexpr std::size_t kQueuedSteps = 4096; // 0.1 s of steps of 25 us: waiting is the exception
// A history on a busy disk may take its time; a locked one keeps its thread for five seconds.
constexpr std::chrono::milliseconds kHistoryWait{2000};
constexpr std::chrono::milliseconds kFailingHistoryWait{500};
constexpr std::chrono::milliseconds kDrainPeriod{100};
class RingProducer final : public Recorder::Producer
{
public:
    void record(const TraceEvent& event) noexcept override { m_ring.push(event); }

    SpscRing<TraceEvent>& ring() noexcept { return m_ring; }
    const SpscRing<TraceEvent>& ring() const noexcept { return m_ring; }

private:
    SpscRing<TraceEvent> m_ring{kSpansPerProducer};
};

// Reason for a drain.
struct Request {
    bool isAsked = false; // somebody waits for it
    bool isLast = false;
    bool durably = false;
    std::uint64_t ticket = 0;
};

class StoreRecorder final : public Recorder
{
public:
    StoreRecorder(RunStore& store, std::int64_t runId, const fs::path& runDir, RecorderHooks hooks)
        : m_store(store)
        , m_runId(runId)
        , m_hooks(std::move(hooks))
        , m_sampler(runDir)
        , m_backlog(store, runId)
    {
    }

    ~StoreRecorder() override { (void)close(); }

    Status openFiles(const fs::path& runDir) { return m_logs.open(runDir); }
    void run();

    Producer& producer(std::string_view threadName) override;
    void step(const StepRow& row) noexcept override;
    void scalar(std::string_view metric, const ScalarRow& row) override;
    void message(EventLevel level, std::string_view code, std::int64_t step, std::int64_t timeMs,
        std::string text, std::string data) override;
    void sample(const MachineSample& sample) override;
    void answer(const AnswerRow& row) override;
    void interval(const IntervalRow& row) override;
    void checkpoint(const CheckpointRow& row, std::string_view hash) override;
    void checkpointState(std::string_view path, std::string_view state) override;
    std::uint64_t droppedSpans() const noexcept override;
    Status flush() override;
    Status close() override;

private:
    Status telemetryLoop(const std::stop_token& stop);
    void drain(const Request& asked);
    void takeSpans();
    void noteHistory(const Status& offered, bool isLast);
    void keepTraces(const std::vector<StepRow>& steps);
    void remember(const Status& failure);

    RunStore& m_store;
    const std::int64_t m_runId;
    const RecorderHooks m_hooks;
    SpscRing<StepRow> m_steps{kQueuedSteps}; // engine thread to telemetry thread

    // Telemetry thread only.
    RunLogs m_logs;
    TraceSampler m_sampler;
    HistoryBacklog m_backlog;
    StepRow m_last; // where the run was, for messages of this thread

    // Guarded by m_mutex.
    mutable std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::condition_variable m_drained;
    std::vector<std::unique_ptr<RingProducer>> m_producers;
    StoreBatch m_pending; // scalars, messages and samples
    std::vector<HistoryBacklog::Change> m_pendingChanges;
    std::uint64_t m_requested = 0; // drains asked for
    std::uint64_t m_durable = 0;   // the last of them that is to reach the disk
    std::uint64_t m_logged = 0;    // in the run folder
    std::uint64_t m_completed = 0; // and finished
    bool m_isFailing = false;      // the history took nothing the last time
    bool m_isSlow = false;         // it was waited for in vain, and has not answered since
    bool m_closed = false;
    Status m_firstFailure;

    std::jthread m_thread; // last: joined before anything it uses goes
};

void StoreRecorder::run()
{
    m_thread = startThread(
        {"telemetry"}, [this](const std::stop_token& stop) { return telemetryLoop(stop); },
        [this](const Status& failure) {
            // Nobody may wait for a thread that has gone.
            const std::lock_guard lock(m_mutex);
            m_closed = true;
            if (m_firstFailure.ok())
                m_firstFailure = failure;
            m_drained.notify_all();
        });
}

Recorder::Producer& StoreRecorder::producer(std::string_view)
{
    const std::lock_guard lock(m_mutex);
    m_producers.push_back(std::make_unique<RingProducer>());
    return *m_producers.back();
}

void StoreRecorder::step(const StepRow& row) noexcept
{
    // A record is never dropped: with the queue full, the engine waits for one drain.
    while (!m_steps.push(row)) {
        std::unique_lock lock(m_mutex);
        if (m_closed)
            return;
        const std::uint64_t ticket = ++m_requested;
        m_wake.notify_one();
        m_drained.wait(lock, [&] { return m_completed >= ticket || m_closed; });
    }
}

void StoreRecorder::scalar(std::string_view metric, const ScalarRow& row)
{
    const std::lock_guard lock(m_mutex);
    m_pending.scalars.push_back({std::string(metric), row});
}

void StoreRecorder::message(EventLevel level, std::string_view code, std::int64_t step,
    std::int64_t timeMs, std::string text, std::string data)
{
    const std::lock_guard lock(m_mutex);
    m_pending.events.push_back(
        {0, step, timeMs, level, std::string(code), std::move(text), std::move(data)});
}

void StoreRecorder::sample(const MachineSample& sample)
{
    const std::lock_guard lock(m_mutex);
    m_pending.samples.push_back(sample);
}

void StoreRecorder::answer(const AnswerRow& row)
{
    const std::lock_guard lock(m_mutex);
    m_pending.answers.push_back(row);
}

void StoreRecorder::interval(const IntervalRow& row)
{
    const std::lock_guard lock(m_mutex);
    m_pending.intervals.push_back(row);
}

void StoreRecorder::checkpoint(const CheckpointRow& row, std::string_view hash)
{
    const std::lock_guard lock(m_mutex);
    m_pendingChanges.emplace_back([this, row, hash = std::string(hash)] {
        return m_store.addCheckpoint(m_runId, row, hash);
    });
}

void StoreRecorder::checkpointState(std::string_view path, std::string_view state)
{
    const std::lock_guard lock(m_mutex);
    m_pendingChanges.emplace_back([this, path = std::string(path), state = std::string(state)] {
        const Status set = m_store.setCheckpointState(path, state);
        // A history that the run was moved to never knew its older checkpoints.
        return !set.ok() && set.kind() == ErrorKind::InvalidArgument ? Status() : set;
    });
}

std::uint64_t StoreRecorder::droppedSpans() const noexcept
{
    const std::lock_guard lock(m_mutex);
    std::uint64_t dropped = 0;
    for (const auto& producer : m_producers)
        dropped += producer->ring().dropped();
    return dropped;
}

Status StoreRecorder::flush()
{
    std::unique_lock lock(m_mutex);
    if (!m_closed) {
        const std::uint64_t ticket = ++m_requested;
        m_durable = ticket;
        m_wake.notify_one();
        const auto isDone = [&] {
            return (m_isFailing ? m_logged : m_completed) >= ticket || m_closed;
        };
        if (!m_isSlow)
            m_isSlow =
                !m_drained.wait_for(lock, m_isFailing ? kFailingHistoryWait : kHistoryWait, isDone);
    }
    return m_firstFailure;
}

Status StoreRecorder::close()
{
    m_thread.request_stop(); // the loop drains once more
    if (m_thread.joinable())
        m_thread.join();
    const std::lock_guard lock(m_mutex);
    m_closed = true;
    return m_firstFailure;
}

Status StoreRecorder::telemetryLoop(const std::stop_token& stop)
{
    while (true) {
        Request asked;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait_for(lock, stop, kDrainPeriod, [&] { return m_requested > m_completed; });
            asked.isLast = stop.stop_requested();
            asked.isAsked = asked.isLast || m_requested > m_completed;
            asked.durably = m_durable > m_completed;
            asked.ticket = m_requested;
        }
        drain(asked);
        const std::lock_guard lock(m_mutex);
        m_completed = asked.ticket;
        m_isSlow = false;
        m_closed = m_closed || asked.isLast;
        m_drained.notify_all();
        if (asked.isLast)
            return {};
    }
}

void StoreRecorder::drain(const Request& asked)
{
    StoreBatch batch;
    std::vector<HistoryBacklog::Change> changes;
    {
        // Before the steps: a message given after its step is then never read before it.
        const std::lock_guard lock(m_mutex);
        std::swap(batch, m_pending);
        changes.swap(m_pendingChanges);
    }
    StepRow row;
    while (m_steps.pop(row))
        batch.steps.push_back(row);
    if (!batch.steps.empty())
        m_last = batch.steps.back();
    takeSpans();
    if (!batch.empty()) {
        if (const Status written = m_logs.append(batch); !written.ok())
            remember(written);
        callHooks(m_hooks, batch);
    }
    if (asked.durably)
        if (const Status synced = m_logs.sync(); !synced.ok())
            remember(synced);
    {
        const std::lock_guard lock(m_mutex);
        m_logged = asked.ticket;
        m_drained.notify_all();
    }
    for (HistoryBacklog::Change& change : changes)
        m_backlog.change(std::move(change));
    keepTraces(batch.steps);
    m_backlog.keep(std::move(batch), asked.isAsked);
    bool isCommitted = false;
    noteHistory(m_backlog.offer(asked.durably, isCommitted), asked.isLast);
    if (isCommitted && m_hooks.onCommitted)
        m_hooks.onCommitted();
}

void StoreRecorder::takeSpans()
{
    std::vector<RingProducer*> producers;
    {
        const std::lock_guard lock(m_mutex);
        for (const auto& producer : m_producers)
            producers.push_back(producer.get());
    }
    for (RingProducer* producer : producers) {
        TraceEvent span;
        // At most one ring's worth, so that a busy producer cannot hold the thread.
        for (std::size_t i = 0; i < kSpansPerProducer && producer->ring().pop(span); ++i)
            m_sampler.add(span);
    }
}

// Said once, and once more when it is over.
void StoreRecorder::noteHistory(const Status& offered, bool isLast)
{
    std::unique_lock lock(m_mutex);
    if (std::exchange(m_isFailing, !offered.ok()) == !offered.ok())
        return;
    if (!offered.ok() && m_firstFailure.ok())
        m_firstFailure = offered;
    const std::string text =
        offered.ok() ? "The history takes records again, and has those that it missed."
                     : offered.message() + "; training goes on, the run folder keeps the records";
    m_pending.events.push_back(
        {0, m_last.step, m_last.timeMs, offered.ok() ? EventLevel::Info : EventLevel::Warning,
            offered.ok() ? "history_back" : "history_failed", text, {}});
    lock.unlock();
    if (!offered.ok() && (isLast || !m_hooks.onMessage)) // nobody else tells
        log(LogLevel::Error, text);
}

void StoreRecorder::keepTraces(const std::vector<StepRow>& steps)
{
    for (const StepRow& step : steps)
        if (const std::optional<TraceRow> row = m_sampler.stepEnded(step))
            m_backlog.change([this, row = *row] { return m_store.addTrace(m_runId, row); });
}

void StoreRecorder::remember(const Status& failure)
{
    log(LogLevel::Error, failure.message() + "; training goes on");
    const std::lock_guard lock(m_mutex);
    if (m_firstFailure.ok())
        m_firstFailure = failure;
}

} // namespace

Result<std::unique_ptr<Recorder>> Recorder::start(
    RunStore& store, std::int64_t runId, const std::string& runDir, RecorderHooks hooks)
{
    auto recorder = std::make_unique<StoreRecorder>(store, runId, runDir, std::move(hooks));
    MR_TRY(recorder->openFiles(runDir));
    recorder->run();
    return std::unique_ptr<Recorder>(std::move(recorder));
}

} // namespace mr
