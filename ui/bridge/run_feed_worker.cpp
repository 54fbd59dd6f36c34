#include "bridge/run_feed_worker.h"

#include <QTimer>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace mr::ui {

namespace {

constexpr int kFeedPollMs = 500; // also finds runs that another program writes
constexpr std::int64_t kRowsPerQuery = 16384;
// Entries of a series at least, where the run has as many: a wide screen's pixels, so that a run of
// an hour can be looked at second by second.
constexpr std::int64_t kMachineColumns = 4096;

// NaN equals NaN here: the question is whether the row on the screen is still the one on disk.
bool sameBits(double a, double b)
{
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool sameStep(const StepRow& a, const StepRow& b)
{
    return a.step == b.step && a.timeMs == b.timeMs && a.wallUs == b.wallUs &&
           a.computeUs == b.computeUs && sameBits(a.loss, b.loss);
}

bool sameHead(const RunRow& a, const RunRow& b)
{
    return a.id == b.id && a.status == b.status && a.name == b.name && a.notes == b.notes &&
           a.tags == b.tags && a.totalSteps == b.totalSteps && a.lastStep == b.lastStep &&
           a.endedMs == b.endedMs && a.activeUs == b.activeUs && a.exitReason == b.exitReason &&
           a.resumable == b.resumable && a.startsAgain == b.startsAgain &&
           a.planJson == b.planJson && sameBits(a.bestEval, b.bestEval) &&
           sameBits(a.firstEval, b.firstEval) && sameBits(a.lastEval, b.lastEval) &&
           sameBits(a.energyJ, b.energyJ);
}

bool sameCheckpoints(const std::vector<CheckpointRow>& a, const std::vector<CheckpointRow>& b)
{
    if (a.size() != b.size())
        return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].step != b[i].step || a[i].state != b[i].state || a[i].path != b[i].path)
            return false;
    }
    return true;
}

} // namespace

RunFeedWorker::RunFeedWorker(const RunFeed& feed, UiServices services)
    : m_feed(feed)
    , m_services(std::move(services))
    , m_timer(new QTimer(this))
{
    m_timer->setInterval(kFeedPollMs);
    connect(m_timer, &QTimer::timeout, this, &RunFeedWorker::poll);
}

RunFeedWorker::~RunFeedWorker() = default;

Status RunFeedWorker::open()
{
    if (m_reader)
        return {};
    Result<std::unique_ptr<RunReader>> reader = m_services.openReader(m_services.database);
    MR_TRY(reader.status());
    m_reader = std::move(reader).value();
    return {};
}

void RunFeedWorker::watch(quint64 token, qint64 runId)
{
    m_token = token;
    m_runId = runId;
    m_now.run = {};
    m_planJson.clear();
    startOver();
    if (runId == 0) {
        m_timer->stop();
        return;
    }
    m_timer->start();
    poll();
}

void RunFeedWorker::startOver()
{
    const std::uint64_t next = m_now.generation + 1;
    RunRow run = std::move(m_now.run);
    std::shared_ptr<const PlanReport> plan = std::move(m_now.plan);
    m_now = {};
    m_now.generation = next;
    m_now.run = std::move(run);
    m_now.plan = std::move(plan);
}

void RunFeedWorker::poll()
{
    if (m_runId == 0 || stale())
        return;
    bool changed = false;
    const Status status = read(changed);
    if (!status.ok()) {
        report(status);
        return;
    }
    m_lastError.clear();
    if (changed && !stale())
        emit snapshotReady(m_token, std::make_shared<const RunSnapshot>(m_now));
    if (hasEnded(m_now.run.status))
        m_timer->stop();
    else if (!m_timer->isActive())
        m_timer->start();
}

Status RunFeedWorker::read(bool& changed)
{
    MR_TRY(open());
    Result<RunRow> run = m_reader->run(m_runId);
    MR_TRY(run.status());
    changed = !sameHead(run.value(), m_now.run);
    m_now.run = std::move(run).value();
    readPlan();
    MR_TRY(readSteps(changed));
    MR_TRY(readLists(changed));
    return readMachine(changed);
}

void RunFeedWorker::readPlan()
{
    if (m_now.run.planJson == m_planJson)
        return;
    m_planJson = m_now.run.planJson;
    // A plan of another version that cannot be read costs its limits, not the charts.
    m_now.plan = nullptr;
    if (m_planJson.empty() || !m_services.planFromJson)
        return;
    Result<PlanReport> plan = m_services.planFromJson(m_planJson);
    if (plan.ok())
        m_now.plan = std::make_shared<const PlanReport>(std::move(plan).value());
}

// A resumed run removes the rows after its checkpoint and writes them again.
Status RunFeedWorker::dropRewrittenSteps()
{
    if (m_now.steps.empty())
        return {};
    const StepRow& last = m_now.steps.back();
    Result<std::vector<StepRow>> again = m_reader->steps(m_runId, last.step - 1, 1);
    MR_TRY(again.status());
    if (again.value().empty() || !sameStep(again.value().front(), last))
        startOver();
    return {};
}

Status RunFeedWorker::readSteps(bool& changed)
{
    const std::uint64_t generation = m_now.generation;
    MR_TRY(dropRewrittenSteps());
    changed = changed || generation != m_now.generation;
    while (!stale()) {
        const std::int64_t after = m_now.steps.empty() ? -1 : m_now.steps.back().step;
        Result<std::vector<StepRow>> rows = m_reader->steps(m_runId, after, kRowsPerQuery);
        MR_TRY(rows.status());
        m_now.steps.append(rows.value());
        changed = changed || !rows.value().empty();
        if (static_cast<std::int64_t>(rows.value().size()) < kRowsPerQuery)
            break;
    }
    return {};
}

Status RunFeedWorker::readLists(bool& changed)
{
    const std::int64_t afterStep = m_now.evalLoss.empty() ? -1 : m_now.evalLoss.back().step;
    Result<std::vector<ScalarRow>> evals = m_reader->scalars(m_runId, "eval_loss", afterStep);
    MR_TRY(evals.status());
    const std::int64_t afterId = m_now.events.empty() ? 0 : m_now.events.back().id;
    Result<std::vector<EventRow>> events = m_reader->events(m_runId, afterId);
    MR_TRY(events.status());
    Result<std::vector<CheckpointRow>> checkpoints = m_reader->checkpoints(m_runId);
    MR_TRY(checkpoints.status());
    MR_ASSIGN(std::vector<ExportRow> exports, m_reader->exports(m_runId));
    Result<std::vector<TraceInfo>> traces = m_reader->traces(m_runId);
    MR_TRY(traces.status());
    const std::int64_t afterUs = m_now.intervals.empty() ? std::numeric_limits<std::int64_t>::min()
                                                         : m_now.intervals.back().endUs;
    Result<std::vector<IntervalRow>> intervals = m_reader->intervals(m_runId, afterUs);
    MR_TRY(intervals.status());

    changed = changed || !evals.value().empty() || !events.value().empty() ||
              !intervals.value().empty() ||
              !sameCheckpoints(m_now.checkpoints, checkpoints.value()) ||
              exports != m_now.exports || traces.value().size() != m_now.traces.size();
    m_now.evalLoss.insert(m_now.evalLoss.end(), evals.value().begin(), evals.value().end());
    m_now.events.insert(m_now.events.end(), events.value().begin(), events.value().end());
    m_now.intervals.insert(
        m_now.intervals.end(), intervals.value().begin(), intervals.value().end());
    m_now.checkpoints = std::move(checkpoints).value();
    m_now.exports = std::move(exports);
    m_now.traces = std::move(traces).value();
    return {};
}

// All of it again when there is more: a level for charts has 16 entries a column at most.
Status RunFeedWorker::readMachine(bool& changed)
{
    Result<std::vector<CounterInfo>> counters = m_reader->counters(m_runId);
    MR_TRY(counters.status());
    std::int64_t endMs = 0;
    for (const CounterInfo& counter : counters.value())
        endMs = std::max(endMs, counter.endMs);
    if (endMs == (m_now.machine ? m_now.machine->endMs : 0))
        return {};
    auto history = std::make_shared<MachineHistory>();
    history->endMs = endMs;
    for (std::size_t i = 0; i < kMachineMetrics && !stale(); ++i) {
        Result<CounterSeries> series =
            m_reader->counter(m_runId, kMachineMetricInfos[i].name, {0, endMs, kMachineColumns});
        MR_TRY(series.status());
        history->series[i] = std::move(series).value();
    }
    m_now.machine = std::move(history);
    changed = true;
    return {};
}

void RunFeedWorker::readRuns()
{
    Status status = open();
    if (status.ok()) {
        Result<std::vector<RunRow>> runs = m_reader->runs();
        if (runs.ok()) {
            emit runsReady(std::make_shared<const std::vector<RunRow>>(std::move(runs).value()));
            return;
        }
        status = runs.status();
    }
    report(status);
}

void RunFeedWorker::readDeleted()
{
    Status status = open();
    if (status.ok()) {
        Result<std::vector<RunRow>> runs = m_reader->deletedRuns();
        if (runs.ok()) {
            emit deletedReady(std::make_shared<const std::vector<RunRow>>(std::move(runs).value()));
            return;
        }
        status = runs.status();
    }
    report(status);
}

// Answers every request, also if the file of the step is gone, so that nobody waits for it.
void RunFeedWorker::readTimeline(quint64 token, qint64 step)
{
    if (token != m_token || stale())
        return;
    Status status = open();
    if (status.ok()) {
        Result<StepTimeline> timeline = m_reader->timeline(m_runId, step);
        if (timeline.ok()) {
            emit timelineReady(
                token, std::make_shared<const StepTimeline>(std::move(timeline).value()));
            return;
        }
        status = timeline.status();
    }
    emit timelineFailed(token, step, QString::fromStdString(status.message()));
}

void RunFeedWorker::report(const Status& status)
{
    const QString sentence = QString::fromStdString(status.message());
    if (sentence == m_lastError)
        return;
    m_lastError = sentence;
    emit failed(sentence);
}

} // namespace mr::ui
