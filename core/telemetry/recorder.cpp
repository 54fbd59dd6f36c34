#include "core/telemetry/recorder.h"

#include "core/base/log.h"
#include "core/base/spsc_ring.h"
#include "core/base/thread.h"
#include "core/telemetry/run_logs.h"
#include "core/telemetry/trace_sampler.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSpansPerProducer = 4096;
constexpr std::size_t kQueuedSteps = 4096; // 0.1 s of steps of 25 us: waiting is the exception
constexpr std::size_t kMaxUnsaved = 100'000;
// A history on a busy disk may take its time; a locked one keeps its thread for five seconds.
constexpr std::chrono::milliseconds kHistoryWait{2000};
constexpr std::chrono::milliseconds kFailingHistoryWait{500};
constexpr std::chrono::milliseconds kDrainPeriod{100};
// A sample rewrites rows of some KiB, so a long run collects some: then a chart of it is behind by
// a thirtieth of its width at most, and ten seconds.
constexpr std::int64_t kSampleShare = 30;
constexpr std::int64_t kMostSampleWaitMs = 10'000;

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
    using Change = std::function<Status()>; // to a row of the history that no batch has

    Status telemetryLoop(const std::stop_token& stop);
    void drain(const Request& asked);
    void holdSamples(StoreBatch& batch, bool isAsked);
    void takeSpans();
    void callHooks(const StoreBatch& batch);
    void keep(StoreBatch batch);
    Status offer(bool durably);
    Status gone() const;
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
    StoreBatch m_unsaved; // rows that the database did not take yet
    std::vector<MachineSample> m_held;
    std::deque<Change> m_changes; // in their order, after m_unsaved
    bool m_committed = false;     // something, in this drain
    StepRow m_last;               // where the run was, for messages of this thread

    // Guarded by m_mutex.
    mutable std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::condition_variable m_drained;
    std::vector<std::unique_ptr<RingProducer>> m_producers;
    StoreBatch m_pending; // scalars, messages and samples
    std::vector<Change> m_pendingChanges;
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
    {
        // Before the steps: a message given after its step is then never read before it.
        const std::lock_guard lock(m_mutex);
        std::swap(batch, m_pending);
        std::move(m_pendingChanges.begin(), m_pendingChanges.end(), std::back_inserter(m_changes));
        m_pendingChanges.clear();
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
        callHooks(batch);
    }
    if (asked.durably)
        if (const Status synced = m_logs.sync(); !synced.ok())
            remember(synced);
    {
        const std::lock_guard lock(m_mutex);
        m_logged = asked.ticket;
        m_drained.notify_all();
    }
    holdSamples(batch, asked.isAsked);
    keepTraces(batch.steps);
    keep(std::move(batch));
    m_committed = false;
    noteHistory(offer(asked.durably), asked.isLast);
    if (m_committed && m_hooks.onCommitted)
        m_hooks.onCommitted();
}

// Takes the samples out of `batch`, or puts those in that have waited long enough.
void StoreRecorder::holdSamples(StoreBatch& batch, bool isAsked)
{
    m_held.insert(m_held.end(), batch.samples.begin(), batch.samples.end());
    batch.samples.clear();
    if (m_held.empty())
        return;
    const std::int64_t last = m_held.back().timeMs;
    const std::int64_t waited = last - m_held.front().timeMs + kMachinePeriodMs;
    if (isAsked || waited >= std::min(last / kSampleShare, kMostSampleWaitMs))
        batch.samples.swap(m_held);
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

// In the order of the steps; rows and messages of a step come after it.
void StoreRecorder::callHooks(const StoreBatch& batch)
{
    std::size_t scalar = 0;
    std::size_t event = 0;
    std::size_t interval = 0;
    const auto callBefore = [&](std::int64_t step) {
        for (; interval < batch.intervals.size() && batch.intervals[interval].step < step;
             ++interval) {
            if (m_hooks.onInterval)
                m_hooks.onInterval(batch.intervals[interval]);
        }
        for (; scalar < batch.scalars.size() && batch.scalars[scalar].row.step < step; ++scalar) {
            if (m_hooks.onScalar)
                m_hooks.onScalar(batch.scalars[scalar].metric, batch.scalars[scalar].row);
        }
        for (; event < batch.events.size() && batch.events[event].step < step; ++event) {
            if (m_hooks.onMessage)
                m_hooks.onMessage(batch.events[event]);
        }
    };
    for (const StepRow& row : batch.steps) {
        callBefore(row.step);
        if (m_hooks.onStep)
            m_hooks.onStep(row);
    }
    callBefore(std::numeric_limits<std::int64_t>::max());
}

// Keeps rows that the database refused and offers them again with the next batch; appending is
// idempotent. Beyond a bound only the run folder has them.
void StoreRecorder::keep(StoreBatch batch)
{
    const auto append = [](auto& to, auto& from) {
        to.insert(
            to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    };
    if (m_unsaved.steps.size() < kMaxUnsaved) {
        append(m_unsaved.steps, batch.steps);
        append(m_unsaved.scalars, batch.scalars);
        append(m_unsaved.events, batch.events);
        append(m_unsaved.answers, batch.answers);
        append(m_unsaved.intervals, batch.intervals);
    }
    if (m_unsaved.samples.size() < kMaxUnsaved)
        append(m_unsaved.samples, batch.samples);
}

Status StoreRecorder::offer(bool durably)
{
    const bool isNew = !m_unsaved.empty() || !m_changes.empty();
    if (!isNew && !durably)
        return m_store.isGone() ? gone() : Status();
    if (!m_unsaved.empty())
        MR_TRY(m_store.append(m_runId, m_unsaved));
    m_committed = !m_unsaved.empty();
    m_unsaved = {};
    while (!m_changes.empty()) {
        MR_TRY(m_changes.front()());
        m_changes.pop_front();
        m_committed = true;
    }
    if (durably)
        MR_TRY(m_store.sync());
    return m_store.isGone() ? gone() : Status();
}

Status StoreRecorder::gone() const
{
    return Status::error(ErrorKind::Io, "history " + m_store.path() +
                                            " was deleted or replaced while the run goes on; it "
                                            "is made again from the run folder when the run ends");
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
            m_changes.emplace_back([this, row = *row] { return m_store.addTrace(m_runId, row); });
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
