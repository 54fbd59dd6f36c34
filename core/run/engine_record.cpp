// What is written down of a run: its record, its row in the history, its messages.

#include "core/base/clock.h"
#include "core/choose/rate_book.h"
#include "core/run/engine.h"
#include "core/run/run_history.h"
#include "core/save/run_files.h"
#include "core/telemetry/run_folder.h"
#include "core/tier/disk_health.h"

#include <millrace/library.h>
#include <millrace/planner.h>

#include <chrono>
#include <string>

namespace mr {
namespace {

constexpr const char* kEngineVersion = "0.1.0";

} // namespace

NewRun Engine::newRun() const
{
    const RunSpec& spec = m_setup.spec;
    NewRun run;
    run.uuid = m_uuid;
    run.name = spec.name;
    run.modelPath = spec.modelDir.empty() ? spec.scratchConfig : spec.modelDir;
    run.modelArchitecture = m_setup.config.architecture;
    run.modelDtype = m_setup.config.dtype;
    run.parameters = m_setup.table.parameters;
    run.datasetPath = datasetPath(spec);
    run.datasetFormat = spec.data.empty() ? std::string() : std::string(name(spec.data[0].format));
    run.configJson = toJson(spec);
    run.askedJson = m_askedJson;
    run.planJson = toJson(planReport());
    run.hostJson = toJson(inspectMachine());
    run.engineVersion = kEngineVersion;
    run.dir = m_runDir.string();
    run.totalSteps = spec.steps;
    run.simulatedLink = m_device.info().simulatedLink;
    run.prompts = 2 * m_data.report.promptRows > m_data.report.rows;
    return run;
}

Status Engine::registerRun()
{
    auto id = m_store.beginRun(newRun());
    if (!id.ok())
        return id.status();
    m_runId = id.value();
    return {};
}

PlanReport Engine::planReport() const
{
    PlanReport report = reportOf(m_setup);
    report.device = m_device.info().name;
    report.simulatedLink = m_device.info().simulatedLink;
    return report;
}

Status Engine::startRecorder()
{
    MR_TRY(m_store.beginSegment(m_runId, m_progress.step));
    RecorderHooks records = m_hooks.records;
    records.onCommitted = [this] {
        if (m_hooks.listener)
            m_hooks.listener(m_runId);
    };
    auto recorder = Recorder::start(m_store, m_runId, m_runDir.string(), std::move(records));
    if (!recorder.ok())
        return recorder.status();
    m_recorder = std::move(recorder).value();
    m_spans = &m_recorder->producer("engine");
    startSampler();
    const bool resumed = m_progress.step > 0;
    m_recorder->message(EventLevel::Info, resumed ? "resumed" : "started", m_progress.step,
        m_resumedMs,
        resumed ? "Resumed after step " + std::to_string(m_progress.step) + "." : "Started.");
    MR_TRY(writeSkippedRows(m_data, m_runDir));
    if (!resumed)
        reportData();
    if (!m_startedAgain.empty())
        m_recorder->message(EventLevel::Warning, "started_again", 0, m_resumedMs, m_startedAgain);
    reportReplans({});
    if (const DiskStore* disk = m_body->disk())
        m_recorder->message(
            EventLevel::Info, "disk_engine", m_progress.step, m_resumedMs, disk->about());
    if (m_otherIsa)
        m_recorder->message(EventLevel::Warning, "instruction_set", m_progress.step, m_resumedMs,
            "The run began on a device with " + m_progress.instructionSet + ", this one has " +
                m_device.info().instructionSet + ": the last bits may differ.");
    return {};
}

// A forecast that was wrong is corrected for the runs to come.
void Engine::learnRates()
{
    const HostNumbers load = m_load.read(nowNs());
    RunTruth truth{m_watch.meanSeconds(), m_watch.timedSteps(), 100.0};
    if (load.cpuPercent && load.processPercent)
        truth.othersPercent = *load.cpuPercent - *load.processPercent;
    if (m_hooks.onTruth)
        m_hooks.onTruth(truth);
    if (!m_recorder || m_watch.measuredSteps() == 0 || !isForecastWrong(m_setup, truth))
        return;
    if (correctRates(
            m_setup, m_watch.measured(m_setup.rates), truth.othersPercent, RateBook::defaultPath()))
        m_recorder->message(EventLevel::Info, "rates_corrected", m_progress.step, activeMs(),
            correctionWords(m_setup, truth));
}

void Engine::reportData()
{
    const auto say = [this](const char* code, const std::string& text) {
        m_recorder->message(EventLevel::Info, code, 0, m_resumedMs, text);
    };
    say("data", "Data: " + describeData(m_data.report) + ".");
    if (const std::string layout = layoutNote(m_data.report); !layout.empty())
        say("layout", "data: " + layout);
    if (const std::string advice = packingAdvice(m_data.report); !advice.empty())
        say("packing", advice);
}

void Engine::startSampler()
{
    using namespace std::chrono;
    DeviceSamplerOptions options;
    options.runBegan = steady_clock::time_point(nanoseconds(m_startNs)) - milliseconds(m_resumedMs);
    options.device = m_device.info().name;
    if (m_setup.memory.usesDisk())
        for (const ScratchMember& member : m_setup.scratch.members)
            options.driveSensors.push_back(driveSensor(member.folder.device));
    m_sampler = DeviceSampler::start(std::move(options),
        [recorder = m_recorder.get()](const MachineSample& sample) { recorder->sample(sample); });
}

// A history that was deleted under the run is made again from the run folder.
Status Engine::endHistory(RunStatus status, int exitCode, const std::string& reason)
{
    if (!m_store.isGone())
        return m_store.endRun(m_runId, status, exitCode, reason);
    auto store = RunStore::open(m_store.path());
    MR_TRY(store.status());
    auto id = rebuildFromRunFolder(*store.value(), m_runDir.string());
    MR_TRY(id.status());
    MR_TRY(enterCheckpoints(*store.value(), id.value(), m_runDir, m_saveDir));
    return store.value()->endRun(id.value(), status, exitCode, reason);
}

MovedBytes Engine::movedBytes() const
{
    const LinkBytes link = m_device.linkBytes();
    const DiskTasks::Moved disk = m_body ? m_body->executor().diskMoved() : DiskTasks::Moved{};
    return {link.toDevice - m_movedBefore.toDevice, link.toHost - m_movedBefore.toHost,
        m_movedBefore.diskRead + disk.readBytes, m_movedBefore.diskWritten + disk.writtenBytes};
}

// A plan that ran between steps: its times count for the interval that is booked next.
void Engine::noteRun(const StepPlan& plan, const StepResult& result)
{
    StallLedger ledger(plan.tasks.size());
    m_account.addRun(ledger.analyse(plan, {result.beginNs, 0, result.endNs, result.tasks}));
}

Status Engine::finishLateParts()
{
    if (m_body->plans().carry().pending.empty())
        return {};
    MR_TRY(m_body->plans().finishLateParts(
        [this](const StepPlan& plan, const StepResult& result) { noteRun(plan, result); }));
    book(IntervalKind::Flush);
    return {};
}

// What the run did since its last row.
void Engine::book(IntervalKind kind)
{
    if (m_body) // an error of it comes back with the next step
        (void)m_body->executor().settleDisk().ok();
    IntervalRow row = m_account.closeInterval(kind, nowNs(), movedBytes());
    row.step = m_progress.step;
    const std::int64_t wallUs = row.endUs;
    row.endUs = m_resumedMs * 1000 + (m_account.endNs() - m_startNs) / 1000;
    row.beginUs = row.endUs - wallUs;
    m_recorder->interval(row);
}

// The record of the folder that a run saves to if that is not its own: as if it were.
Status Engine::saveRecordOf(const std::filesystem::path& saveDir) const
{
    RunSpec spec = m_setup.spec;
    spec.outDir = saveDir.string();
    spec.saveDir.clear();
    NewRun run = newRun();
    run.configJson = toJson(spec);
    run.dir = spec.outDir;
    return saveRunRecord(run.dir, run);
}

// What the run record and the history say of the run from here on.
Status Engine::recordPlan()
{
    const NewRun run = newRun();
    if (m_saveDir != m_runDir)
        MR_TRY(saveRecordOf(m_saveDir));
    MR_TRY(saveRunRecord(m_runDir.string(), run));
    (void)m_store.setConfig(m_runId, run.configJson).ok();
    (void)m_store.setPlan(m_runId, run.planJson, run.totalSteps).ok();
    return {};
}

} // namespace mr
