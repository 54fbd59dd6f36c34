#include "core/telemetry/recorder.h"

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/spsc_ring.h"
#include "core/base/thread.h"
#include "core/telemetry/step_json.h"
#include "core/telemetry/trace_sampler.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSpansPerProducer = 4096;
constexpr std::size_t kQueuedSteps = 4096; // 0.1 s of steps of 25 us: waiting is the exception
constexpr std::size_t kMaxUnsaved = 100'000;
constexpr std::chrono::milliseconds kPeriod{100};

class RingProducer final : public Recorder::Producer
{
public:
    void record(const TraceEvent& event) noexcept override { m_ring.push(event); }

    SpscRing<TraceEvent>& ring() noexcept { return m_ring; }
    const SpscRing<TraceEvent>& ring() const noexcept { return m_ring; }

private:
    SpscRing<TraceEvent> m_ring{kSpansPerProducer};
};

// A log that a crash cut in the middle of a line gets the end of that line first.
Result<File> openLog(const fs::path& path)
{
    Result<File> file = File::openAppend(path);
    MR_TRY(file.status());
    Result<File> reader = File::openRead(path);
    MR_TRY(reader.status());
    Result<std::uint64_t> bytes = reader.value().bytes();
    MR_TRY(bytes.status());
    if (bytes.value() == 0)
        return file;
    std::byte last{};
    MR_TRY(reader.value().readAt(bytes.value() - 1, {&last, 1}));
    constexpr std::byte kNewLine{'\n'};
    if (last != kNewLine)
        MR_TRY(file.value().write({&kNewLine, 1}));
    return file;
}

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

    Status openFiles(const fs::path& runDir);
    void run();

    Producer& producer(std::string_view threadName) override;
    void step(const StepRow& row) noexcept override;
    void scalar(std::string_view metric, const ScalarRow& row) override;
    void message(EventLevel level, std::string_view code, std::int64_t step, std::int64_t timeMs,
        std::string text) override;
    std::uint64_t droppedSpans() const noexcept override;
    Status flush() override;
    Status close() override;

private:
    Status telemetryLoop(const std::stop_token& stop);
    void drain();
    void takeSpans();
    void writeFiles(const StoreBatch& batch);
    void callHooks(const StoreBatch& batch);
    bool commit(StoreBatch batch);
    void keepTraces(const std::vector<StepRow>& steps);
    void remember(const Status& failure, bool fromDatabase);

    RunStore& m_store;
    const std::int64_t m_runId;
    const RecorderHooks m_hooks;
    SpscRing<StepRow> m_steps{kQueuedSteps}; // engine thread to telemetry thread

    // Of the telemetry thread.
    File m_stepFile;
    File m_eventFile;
    TraceSampler m_sampler;
    StoreBatch m_unsaved; // what the database did not take yet
    bool m_databaseFailed = false;
    bool m_filesFailed = false;

    // Guarded by m_mutex.
    mutable std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::condition_variable m_drained;
    std::vector<std::unique_ptr<RingProducer>> m_producers;
    StoreBatch m_pending;          // scalars and messages
    std::uint64_t m_requested = 0; // drains asked for
    std::uint64_t m_completed = 0; // and finished
    bool m_closed = false;
    Status m_firstFailure;

    std::jthread m_thread; // last: joined before anything it uses goes
};

Status StoreRecorder::openFiles(const fs::path& runDir)
{
    Result<File> steps = openLog(runDir / "steps.jsonl");
    MR_TRY(steps.status());
    Result<File> events = openLog(runDir / "events.jsonl");
    MR_TRY(events.status());
    m_stepFile = std::move(steps).value();
    m_eventFile = std::move(events).value();
    return {};
}

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
    std::int64_t timeMs, std::string text)
{
    const std::lock_guard lock(m_mutex);
    m_pending.events.push_back({0, step, timeMs, level, std::string(code), std::move(text)});
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
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait_for(lock, stop, kPeriod, [&] { return m_requested > m_completed; });
            isLast = stop.stop_requested();
            ticket = m_requested;
        }
        drain();
        const std::lock_guard lock(m_mutex);
        m_completed = ticket;
        m_closed = m_closed || isLast;
        m_drained.notify_all();
        if (isLast)
            return {};
    }
}

void StoreRecorder::drain()
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
    const bool isEmpty = batch.steps.empty() && batch.scalars.empty() && batch.events.empty();
    if (!isEmpty) {
        writeFiles(batch);
        callHooks(batch);
    }
    const std::vector<StepRow> steps = batch.steps;
    const bool committed = commit(std::move(batch));
    keepTraces(steps);
    if (committed && m_hooks.onCommitted)
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

void StoreRecorder::writeFiles(const StoreBatch& batch)
{
    if (m_filesFailed)
        return;
    std::string steps;
    for (const StepRow& row : batch.steps)
        steps += toJson(row) + "\n";
    std::string events;
    for (const NamedScalar& scalar : batch.scalars)
        events += toJson(scalar.metric, scalar.row) + "\n";
    for (const EventRow& event : batch.events)
        events += toJson(event) + "\n";
    Status written = m_stepFile.write(std::as_bytes(std::span(steps)));
    if (written.ok())
        written = m_eventFile.write(std::as_bytes(std::span(events)));
    if (!written.ok()) {
        m_filesFailed = true;
        remember(written, false);
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
    }
    if (m_unsaved.steps.empty() && m_unsaved.scalars.empty() && m_unsaved.events.empty())
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
