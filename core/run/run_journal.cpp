#include "core/run/run_journal.h"

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/run/run_history.h"
#include "core/save/run_files.h"
#include "core/telemetry/run_folder.h"
#include "core/telemetry/stall_ledger.h"
#include "core/tier/disk_health.h"

#include <millrace/library.h>
#include <millrace/planner.h>

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace mr {
namespace {

constexpr const char* kEngineVersion = "0.1.0";

PlanReport planReport(const RunContext& run)
{
    PlanReport report = reportOf(run.setup);
    report.device = run.device.info().name;
    report.simulatedLink = run.device.info().simulatedLink;
    return report;
}

// A file that was prepared stays, so the user has to know of it.
std::string baseNote(const RunSetup& setup, const DiskFile& file)
{
    std::string note =
        "Frozen weights are read from " + file.path().parent_path().string() + " for every use.";
    if (!setup.readsOwnFiles)
        note += " The file of " + formatBytes(file.bytes()) +
                " there was prepared from the model and stays for later runs; it may be deleted "
                "when no run uses it.";
    return note;
}

} // namespace

RunJournal::RunJournal(RunContext& run)
    : m_run(run)
{
    const LinkBytes link = run.device.linkBytes();
    m_movedBefore = {link.toDevice, link.toHost, 0, 0};
    m_account.begin(nowNs(), {});
}

NewRun RunJournal::newRun() const
{
    const RunSetup& setup = m_run.setup;
    const RunSpec& spec = setup.spec;
    NewRun run;
    run.uuid = m_run.uuid;
    run.name = spec.name;
    run.modelPath = spec.modelDir.empty() ? spec.scratchConfig : spec.modelDir;
    run.modelArchitecture = setup.config.architecture;
    run.modelDtype = setup.config.dtype;
    run.parameters = wholeModel(setup.table).parameters;
    run.datasetPath = datasetPath(spec);
    run.datasetFormat = spec.data.empty() ? std::string() : std::string(name(spec.data[0].format));
    run.configJson = toJson(spec);
    run.askedJson = m_run.askedJson;
    run.planJson = toJson(planReport(m_run));
    run.hostJson = toJson(inspectMachine());
    run.engineVersion = kEngineVersion;
    run.dir = m_run.runDir.string();
    run.totalSteps = spec.steps;
    run.simulatedLink = m_run.device.info().simulatedLink;
    if (!m_run.products.isEmpty())
        run.productsJson = toJson(m_run.products);
    run.prompts = 2 * m_run.data.report.promptRows > m_run.data.report.rows;
    return run;
}

Status RunJournal::saveRecord() const
{
    return saveRunRecord(m_run.runDir.string(), newRun());
}

Status RunJournal::registerRun()
{
    auto id = m_run.store.beginRun(newRun());
    MR_TRY(id.status());
    m_run.id = id.value();
    return {};
}

Status RunJournal::recordPlan()
{
    const NewRun run = newRun();
    if (m_run.saveDir != m_run.runDir)
        MR_TRY(saveRecordOf(m_run.saveDir));
    MR_TRY(saveRunRecord(m_run.runDir.string(), run));
    (void)m_run.store.setConfig(m_run.id, run.configJson).ok();
    (void)m_run.store.setPlan(m_run.id, run.planJson, run.totalSteps).ok();
    return {};
}

Status RunJournal::recordSaveDir()
{
    const Status known = saveRecord();
    (void)m_run.store.setConfig(m_run.id, newRun().configJson).ok();
    return known;
}

Status RunJournal::saveRecordOf(const std::filesystem::path& saveDir) const
{
    RunSpec spec = m_run.setup.spec;
    spec.outDir = saveDir.string();
    spec.saveDir.clear();
    NewRun run = newRun();
    run.configJson = toJson(spec);
    run.dir = spec.outDir;
    return saveRunRecord(run.dir, run);
}

Status RunJournal::start()
{
    MR_TRY(m_run.store.beginSegment(m_run.id, m_run.step()));
    RecorderHooks records = m_run.hooks.records;
    records.onCommitted = [&run = m_run] {
        if (run.hooks.listener)
            run.hooks.listener(run.id);
    };
    MR_ASSIGN(m_recorder,
        Recorder::start(m_run.store, m_run.id, m_run.runDir.string(), std::move(records)));
    m_spans = &m_recorder->producer("engine");
    startSampler();
    reportStart();
    return writeSkippedRows(m_run.data, m_run.runDir);
}

// Nothing has happened yet, so the time of these messages is that of the earlier lives.
void RunJournal::messageOfStart(
    EventLevel level, std::string_view code, std::string text, std::string data)
{
    m_recorder->message(
        level, code, m_run.step(), m_run.resumedMs, std::move(text), std::move(data));
}

void RunJournal::reportStart()
{
    const bool resumed = m_run.step() > 0;
    messageOfStart(EventLevel::Info, resumed ? "resumed" : "started",
        resumed ? fmt::format("Resumed after step {}.", m_run.step()) : "Started.");
    if (!resumed)
        reportData();
    if (!m_run.startedAgain.empty())
        messageOfStart(EventLevel::Warning, "started_again", m_run.startedAgain);
    if (const DiskStore* disk = m_run.body->disk()) {
        messageOfStart(EventLevel::Info, "disk_engine", disk->about());
        if (!disk->others().empty())
            messageOfStart(EventLevel::Info, "base", baseNote(m_run.setup, disk->others().front()));
    }
    const ProductVerdict& products = m_run.products;
    if (products.wasMade())
        messageOfStart(products.isClean() ? EventLevel::Info : EventLevel::Warning, "products",
            describe(products), toJson(products));
    if (std::string note = emulationNote(m_run.setup); !note.empty())
        messageOfStart(EventLevel::Info, "fp8", std::move(note));
    const std::string& before = m_run.progress.instructionSet;
    const std::string& now = m_run.device.info().instructionSet;
    if (before != now)
        messageOfStart(EventLevel::Warning, "instruction_set",
            "The run began on a device with " + before + ", this one has " + now +
                ": the last bits may differ.");
}

void RunJournal::reportData()
{
    const DataReport& data = m_run.data.report;
    messageOfStart(EventLevel::Info, "data", "Data: " + describeData(data) + ".");
    if (const std::string layout = layoutNote(data); !layout.empty())
        messageOfStart(EventLevel::Info, "layout", "data: " + layout);
    if (const std::string advice = packingAdvice(data); !advice.empty())
        messageOfStart(EventLevel::Info, "packing", advice);
    for (const std::string& note : data.notes)
        messageOfStart(EventLevel::Warning, "tokenizer", note);
    if (const std::string advice = thoughtAdvice(data.emptyThoughts, data.answers); !advice.empty())
        messageOfStart(EventLevel::Warning, "thoughts", advice);
    if (const std::string advice = switchAdvice(data.unreadSwitches); !advice.empty())
        messageOfStart(EventLevel::Warning, "switches", advice);
}

void RunJournal::startSampler()
{
    using namespace std::chrono;
    DeviceSamplerOptions options;
    options.runBegan =
        steady_clock::time_point(nanoseconds(m_run.startNs)) - milliseconds(m_run.resumedMs);
    options.device = m_run.device.info().name;
    if (m_run.setup.memory.usesDisk())
        for (const ScratchMember& member : m_run.setup.scratch.members)
            options.driveSensors.push_back(driveSensor(member.folder.device));
    m_sampler = DeviceSampler::start(std::move(options),
        [recorder = m_recorder.get()](const MachineSample& sample) { recorder->sample(sample); });
}

void RunJournal::message(
    EventLevel level, std::string_view code, std::string text, std::string data)
{
    m_recorder->message(
        level, code, m_run.step(), m_run.activeMs(), std::move(text), std::move(data));
}

void RunJournal::flush()
{
    (void)m_recorder->flush().ok();
}

MovedBytes RunJournal::moved() const
{
    const LinkBytes link = m_run.device.linkBytes();
    const DiskTasks::Moved disk =
        m_run.body ? m_run.body->executor().diskMoved() : DiskTasks::Moved{};
    return {link.toDevice - m_movedBefore.toDevice, link.toHost - m_movedBefore.toHost,
        m_movedBefore.diskRead + disk.readBytes, m_movedBefore.diskWritten + disk.writtenBytes};
}

void RunJournal::keepMoved()
{
    const DiskTasks::Moved moved = m_run.body->executor().diskMoved();
    m_movedBefore.diskRead += moved.readBytes;
    m_movedBefore.diskWritten += moved.writtenBytes;
}

void RunJournal::noteRun(const StepPlan& plan, const StepResult& result)
{
    StallLedger ledger(plan.tasks.size());
    m_account.addRun(ledger.analyse(plan, {result.beginNs, 0, result.endNs, result.tasks}));
}

Status RunJournal::finishLateParts()
{
    PlanSequence& plans = m_run.body->plans();
    if (plans.carry().pending.empty())
        return {};
    MR_TRY(plans.finishLateParts(
        [this](const StepPlan& plan, const StepResult& result) { noteRun(plan, result); }));
    book(IntervalKind::Flush);
    return {};
}

void RunJournal::book(IntervalKind kind)
{
    if (m_run.body) // its error comes back with the next step
        (void)m_run.body->executor().settleDisk().ok();
    IntervalRow row = m_account.closeInterval(kind, nowNs(), moved());
    row.step = m_run.step();
    const std::int64_t wallUs = row.endUs;
    row.endUs = m_run.resumedMs * 1000 + (m_account.endNs() - m_run.startNs) / 1000;
    row.beginUs = row.endUs - wallUs;
    m_recorder->interval(row);
}

void RunJournal::close(EventLevel level, std::string_view code, std::string text)
{
    m_sampler.reset(); // joined: nothing comes after the last message
    message(level, code, std::move(text));
    (void)m_recorder->close().ok(); // a failed history was reported; the run folder has it all
}

Status RunJournal::endHistory(RunStatus status, int exitCode, const std::string& reason)
{
    RunStore& known = m_run.store;
    if (!known.isGone())
        return known.endRun(m_run.id, status, exitCode, reason);
    MR_ASSIGN(auto store, RunStore::open(known.path()));
    MR_ASSIGN(auto id, rebuildFromRunFolder(*store, m_run.runDir.string()));
    MR_TRY(enterCheckpoints(*store, id, m_run.runDir, m_run.saveDir));
    return store->endRun(id, status, exitCode, reason);
}

} // namespace mr
