#include "core/telemetry/recorder.h"

#include "core/base/log.h"
#include "core/base/spsc_ring.h"
#include "core/base/thread.h"
#include "core/telemetry/run_logs.h"
#include "core/telemetry/trace_sampler.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
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
constexpr std::chrono::milliseconds kPeriod{100};
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
    std::uint64_t droppedSpans() const noexcept override;
    Status flush() override;
    Status close() override;

private:
    Status telemetryLoop(const std::stop_token& stop);
    void drain(bool isAsked);
    void holdSamples(StoreBatch& batch, bool isAsked);
    void takeSpans();
    void callHooks(const StoreBatch& batch);
    bool commit(StoreBatch batch);
    void keepTraces(const std::vector<StepRow>& steps);
    void remember(const Status& failure, bool fromDatabase);

    RunStore& m_store;
    const std::int64_t m_runId;
    const RecorderHooks m_hooks;
    SpscRing<StepRow> m_steps{kQueuedSteps}; // engine thread to telemetry thread

    // Of the telemetry thread.
    RunLogs m_logs;
    TraceSampler m_sampler;
    StoreBatch m_unsaved; // what the database did not take yet
    std::vector<MachineSample> m_held;
    bool m_databaseFailed = false;

    // Guarded by m_mutex.
    mutable std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::condition_variable m_drained;
    std::vector<std::unique_ptr<RingProducer>> m_producers;
    StoreBatch m_pending;          // scalars, messages and samples
    std::uint64_t m_requested = 0; // drains asked for
    std::uint64_t m_completed = 0; // and finished
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
        m_wake.notify_one();
        m_drained.wait(lock, [&] { return m_completed >= ticket || m_closed; });
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
        std::uint64_t ticket = 0;
        bool isLast = false;
        bool isAsked = false;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait_for(lock, stop, kPeriod, [&] { return m_requested > m_completed; });
            isLast = stop.stop_requested();
            isAsked = isLast || m_requested > m_completed;
            ticket = m_requested;
        }
        drain(isAsked);
        const std::lock_guard lock(m_mutex);
        m_completed = ticket;
        m_closed = m_closed || isLast;
        m_drained.notify_all();
        if (isLast)
            return {};
    }
}

void StoreRecorder::drain(bool isAsked)
{
    StoreBatch batch;
    {
        // Before the steps: a message given after its step is then never read before it.
        const std::lock_guard lock(m_mutex);
        std::swap(batch, m_pending);
    }
    StepRow row;
    while (m_steps.pop(row))
        batch.steps.push_back(row);
    takeSpans();
    if (!batch.empty()) {
        if (const Status written = m_logs.append(batch); !written.ok())
            remember(written, false);
        callHooks(batch);
    }
    holdSamples(batch, isAsked);
    const std::vector<StepRow> steps = batch.steps;
    const bool committed = commit(std::move(batch));
    keepTraces(steps);
    if (committed && m_hooks.onCommitted)
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

// In the order of the steps; what belongs to a step comes after it.
void StoreRecorder::callHooks(const StoreBatch& batch)
{
    std::size_t scalar = 0;
    std::size_t event = 0;
    const auto callBefore = [&](std::int64_t step) {
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

// What the database refuses is kept and offered again with the next batch; appending is
// idempotent. Beyond a bound only the run folder has it.
bool StoreRecorder::commit(StoreBatch batch)
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
    }
    if (m_unsaved.samples.size() < kMaxUnsaved)
        append(m_unsaved.samples, batch.samples);
    if (m_unsaved.empty())
        return false;
    if (const Status stored = m_store.append(m_runId, m_unsaved); !stored.ok()) {
        remember(stored, true);
        return false;
    }
    m_unsaved = {};
    return true;
}

void StoreRecorder::keepTraces(const std::vector<StepRow>& steps)
{
    for (const StepRow& step : steps) {
        if (const std::optional<TraceRow> row = m_sampler.stepEnded(step)) {
            if (const Status stored = m_store.addTrace(m_runId, *row); !stored.ok())
                remember(stored, true);
        }
    }
}

void StoreRecorder::remember(const Status& failure, bool fromDatabase)
{
    if (fromDatabase && !std::exchange(m_databaseFailed, true))
        log(LogLevel::Error,
            failure.message() + "; training goes on, the run folder keeps the records");
    else if (!fromDatabase)
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
