// How a run comes to be from a spec. From the folder of an earlier life: engine_resume.cpp.

#include "core/base/bytes.h"
#include "core/base/file.h"
#include "core/choose/checkpoint_size.h"
#include "core/data/chat_format.h"
#include "core/model/weights.h"
#include "core/run/engine.h"
#include "core/run/run_data.h"
#include "core/save/run_files.h"
#include "core/step/run_master.h"
#include "core/telemetry/run_folder.h"
#include "core/tier/disk_wear.h"
#include "core/tier/scratch_file.h"

#include <millrace/library.h>
#include <millrace/planner.h>
#include <millrace/run_reader.h>

#include <algorithm>
#include <array>

namespace mr {
namespace fs = std::filesystem;
namespace {

Status refuseIfFull(const fs::path& runDir, std::uint64_t checkpoint)
{
    auto free = freeBytes(runDir);
    if (!free.ok())
        return free.status();
    // One checkpoint is written beside the last one, and the exported model beside both.
    const std::uint64_t needed = 2 * checkpoint;
    if (free.value() >= needed)
        return {};
    return Status::error(ErrorKind::OutOfMemory,
        runDir.string() + ": " + formatBytes(free.value()) +
            " are free, checkpoints of this run need " + formatBytes(needed) +
            "; free some space or choose another folder with --out");
}

} // namespace

Result<std::unique_ptr<Session>> Session::open(const RunSpec& spec, Device& device, RunStore& store,
    Listener listener, OpeningWatch watch, const RunSpec* asked)
{
    EngineHooks hooks;
    hooks.listener = std::move(listener);
    hooks.opening = std::move(watch);
    hooks.asked = asked ? std::optional(*asked) : std::nullopt;
    auto engine = Engine::open(spec, device, store, std::move(hooks));
    if (!engine.ok())
        return engine.status();
    return std::unique_ptr<Session>(std::move(engine).value());
}

Result<std::unique_ptr<Session>> Session::resume(const std::string& runDir, Device& device,
    RunStore& store, Listener listener, OpeningWatch watch)
{
    EngineHooks hooks;
    hooks.listener = std::move(listener);
    hooks.opening = std::move(watch);
    auto engine = Engine::resume(runDir, device, store, std::move(hooks));
    if (!engine.ok())
        return engine.status();
    return std::unique_ptr<Session>(std::move(engine).value());
}

Result<std::unique_ptr<Engine>> Engine::open(
    const RunSpec& spec, Device& device, RunStore& store, EngineHooks hooks)
{
    auto engine = std::unique_ptr<Engine>(new Engine(device, store, std::move(hooks)));
    auto whole = withTemplateText(spec);
    MR_TRY(whole.status());
    const bool isTaught = !spec.data.empty() && !templateAsked(spec.data.front()).empty();
    const bool hasTemplate = isTaught || ChatFormat::isIn(modelFolder(spec));
    MR_TRY(engine->prepareData(
        hasTemplate ? withStyle(whole.value(), RowStyle::Template) : whole.value()));
    engine->m_askedJson =
        toJson(withPathsOf(engine->m_setup.spec, engine->m_hooks.asked.value_or(spec)));
    auto place = makeRunDir(engine->m_setup.spec);
    if (!place.ok())
        return place.status();
    engine->m_runDir = place.value().dir;
    engine->m_lock = std::move(place.value().lock);
    MR_TRY(engine->takeOver(place.value().uuidBefore));
    engine->m_setup.spec.outDir = engine->m_runDir.string();
    engine->m_setup.spec.saveDir.clear();
    engine->m_saveDir = engine->m_runDir;
    MR_TRY(refuseIfFull(engine->m_runDir, checkpointBytes(engine->m_setup)));
    MR_TRY(engine->refuseIfTooLarge());
    const RunSetup& setup = engine->m_setup;
    MR_TRY(checkDiskWrites(reportOf(setup).diskWriteBytesOfRun, setup.spec.maxDiskWriteBytes));
    engine->m_uuid = newUuid();
    MR_TRY(engine->openFirst(Source::Model));
    if (!place.value().uuidBefore.empty())
        engine->removeOldRecords();
    MR_TRY(saveRunRecord(engine->m_runDir.string(), engine->newRun()));
    MR_TRY(engine->registerRun());
    return engine;
}

Result<std::unique_ptr<Engine>> Engine::resume(
    const fs::path& runDir, Device& device, RunStore& store, EngineHooks hooks)
{
    auto engine = std::unique_ptr<Engine>(new Engine(device, store, std::move(hooks)));
    MR_TRY(engine->prepareResume(runDir));
    return engine;
}

// A new run in the folder of one that ended before its first checkpoint. Empty: there is none.
Status Engine::takeOver(const std::string& uuid)
{
    if (uuid.empty())
        return {};
    auto known = m_store.findRun(uuid);
    auto reader = RunReader::open(m_store.path());
    auto row =
        known.ok() && reader.ok() ? reader.value()->run(known.value()) : Result<RunRow>(RunRow{});
    // The reader calls one whose process died lost.
    if (known.ok() && row.ok() && !hasEnded(row.value().status))
        return Status::error(ErrorKind::InvalidArgument,
            m_runDir.string() + ": a run is being trained there (" + row.value().name +
                "); wait for it or choose another folder");
    m_startedAgain = "The run that was in this folder ended before its first checkpoint; this one "
                     "takes its place.";
    return {};
}

void Engine::removeOldRecords() const
{
    std::error_code error; // what stays is only read to rebuild a lost history
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(m_runDir, error)) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".jsonl") || (name.starts_with("trace-") && name.ends_with(".json")))
            old.push_back(entry.path());
    }
    for (const fs::path& path : old)
        fs::remove(path, error);
}

// openBody() for a run that is not yet there.
Status Engine::openFirst(Source source)
{
    removeLeftScratch();
    const Status opened = openBody(source);
    if (!opened.ok() && opened.kind() == ErrorKind::Cancelled)
        recordStopInOpening(opened.message());
    return opened;
}

// Files of runs that crashed and were not resumed: nobody else would ever remove them. One that is
// resumed later fills its file again. What this run's own crash left is taken over.
void Engine::removeLeftScratch() const
{
    if (m_setup.memory.usesDisk())
        for (const std::string& folder : m_setup.spec.diskPaths)
            // One that cannot be read is refused when the file is made.
            (void)removeStaleScratch(folder, m_uuid).ok();
}

// A run folder without a record: the run can be started there again.
void Engine::recordStopInOpening(const std::string& why)
{
    auto known = m_store.findRun(m_uuid);
    if (known.ok())
        m_runId = known.value();
    if (known.ok() || registerRun().ok())
        (void)m_store.endRun(m_runId, RunStatus::Stopped, 0, why).ok(); // what was stopped stays so
}

Status Engine::prepareData(const RunSpec& spec)
{
    auto early = setUpRun(spec, 0); // refuses a bad model or setting before the data is read
    if (!early.ok())
        return early.status();
    auto data = readRunData(early.value().spec, early.value().config.vocab);
    if (!data.ok())
        return data.status();
    m_data = std::move(data).value();
    auto hash = dataHash(m_data.train);
    MR_TRY(hash.status());
    m_dataHash = std::move(hash).value();
    auto setup = setUpRun(spec, m_data.train.batchRows());
    if (!setup.ok())
        return setup.status();
    m_setup = std::move(setup).value();
    const RunSpec& run = m_setup.spec;
    m_schedule = {run.schedule, run.learningRate, run.warmupSteps, run.steps};
    return {};
}

Status Engine::refuseIfTooLarge() const
{
    if (m_setup.limit.empty())
        return {};
    auto report = planRun(m_setup.spec);
    std::string text = "the run does not fit: " + m_setup.limit;
    if (report.ok())
        for (const std::string& advice : report.value().advice)
            text += "\n  " + advice;
    return Status::error(ErrorKind::OutOfMemory, text);
}

RunProgress Engine::firstProgress() const
{
    RunProgress progress;
    progress.sampler = {
        m_setup.spec.seed, 0, 0, static_cast<std::uint64_t>(m_data.train.batchRows())};
    progress.dataHash = m_dataHash;
    progress.instructionSet = m_device.info().instructionSet;
    progress.precision = std::string(name(m_setup.spec.precision));
    return progress;
}

Status Engine::prepareWeights()
{
    const RunSpec& spec = m_setup.spec;
    std::unique_ptr<MasterReader> weights;
    if (spec.modelDir.empty()) {
        weights = initialWeights(m_setup.config, m_setup.table, spec.seed);
    } else {
        auto opened = openWeights(spec.modelDir, m_setup.config, m_setup.table);
        MR_TRY(opened.status());
        weights = std::move(opened).value();
    }
    return installMaster(m_body->executor(), m_body->memory(), *weights);
}

} // namespace mr
