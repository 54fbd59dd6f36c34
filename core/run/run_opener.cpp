#include "core/run/run_opener.h"

#include "core/base/bytes.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/choose/checkpoint_size.h"
#include "core/data/chat_format.h"
#include "core/run/opening_check.h"
#include "core/run/run_data.h"
#include "core/save/run_files.h"
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

Status refuseIfFull(const fs::path& runDir, std::uint64_t needed)
{
    auto free = freeBytes(runDir);
    if (!free.ok())
        return free.status();
    if (free.value() >= needed)
        return {};
    return Status::error(ErrorKind::OutOfMemory,
        runDir.string() + ": " + formatBytes(free.value()) +
            " are free, checkpoints and results of this run need " + formatBytes(needed) +
            "; free some space or choose another folder with --out");
}

} // namespace

RunOpener::RunOpener(RunContext& run, RunJournal& journal, Replanner& replanner)
    : m_run(run)
    , m_journal(journal)
    , m_replanner(replanner)
{
}

Status RunOpener::open(const RunSpec& spec)
{
    MR_ASSIGN(auto whole, withTemplateText(spec));
    const bool isTaught = !spec.data.empty() && !templateAsked(spec.data.front()).empty();
    const bool hasTemplate = isTaught || ChatFormat::isIn(modelFolder(spec));
    MR_TRY(prepare(hasTemplate ? withStyle(whole, RowStyle::Template) : whole));
    m_run.askedJson = toJson(withPathsOf(m_run.setup.spec, m_run.hooks.asked.value_or(spec)));
    MR_ASSIGN(auto place, makeRunDir(m_run.setup.spec));
    m_run.runDir = place.dir;
    m_run.lock = std::move(place.lock);
    MR_TRY(takeOver(place.uuidBefore));
    m_run.setup.spec.outDir = m_run.runDir.string();
    m_run.setup.spec.saveDir.clear();
    m_run.saveDir = m_run.runDir;
    MR_TRY(refuseIfFull(m_run.runDir, roomNeeded(m_run.setup)));
    MR_TRY(refuseIfTooLarge());
    const RunSetup& setup = m_run.setup;
    MR_TRY(checkDiskWrites(reportOf(setup).diskWriteBytesOfRun, setup.spec.maxDiskWriteBytes));
    m_run.uuid = newUuid();
    MR_TRY(openBody(BodySource::Model));
    if (!place.uuidBefore.empty())
        removeOldRecords();
    MR_TRY(m_journal.saveRecord());
    return m_journal.registerRun();
}

// A new run in the folder of one that ended before its first checkpoint. Empty: there is none.
Status RunOpener::takeOver(const std::string& uuidBefore)
{
    if (uuidBefore.empty())
        return {};
    auto known = m_run.store.findRun(uuidBefore);
    auto reader = RunReader::open(m_run.store.path());
    auto row =
        known.ok() && reader.ok() ? reader.value()->run(known.value()) : Result<RunRow>(RunRow{});
    // The reader calls a run lost if its process died.
    if (known.ok() && row.ok() && !hasEnded(row.value().status))
        return Status::error(ErrorKind::InvalidArgument,
            m_run.runDir.string() + ": a run is being trained there (" + row.value().name +
                "); wait for it or choose another folder");
    m_run.startedAgain =
        "The run that was in this folder ended before its first checkpoint; this one "
        "takes its place.";
    return {};
}

void RunOpener::removeOldRecords() const
{
    std::error_code error; // files that stay are only read to rebuild a lost history
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(m_run.runDir, error)) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".jsonl") || (name.starts_with("trace-") && name.ends_with(".json")))
            old.push_back(entry.path());
    }
    for (const fs::path& path : old)
        fs::remove(path, error);
}

Status RunOpener::openBody(BodySource source)
{
    removeLeftScratch();
    // Here, because nobody can say it any more if the system ends the program.
    if (const std::string believed = believedBudget(m_run.setup); !believed.empty())
        log(LogLevel::Warning, believed);
    MR_TRY(checkRunProducts(m_run));
    const Status opened = m_replanner.openBody(source);
    if (!opened.ok() && opened.kind() == ErrorKind::Cancelled)
        recordStop(opened.message());
    return opened;
}

// Files of runs that crashed and were not resumed: nobody else would ever remove them. A run that
// is resumed later fills its file again. This run takes over the files that its own crash left.
void RunOpener::removeLeftScratch() const
{
    if (m_run.setup.memory.usesDisk())
        for (const std::string& folder : m_run.setup.spec.diskPaths)
            // One that cannot be read is refused when the file is made.
            (void)removeStaleScratch(folder, m_run.uuid).ok();
}

// A run folder without a record: the run can be started there again.
void RunOpener::recordStop(const std::string& why)
{
    auto known = m_run.store.findRun(m_run.uuid);
    if (known.ok())
        m_run.id = known.value();
    if (known.ok() || m_journal.registerRun().ok())
        (void)m_run.store.endRun(m_run.id, RunStatus::Stopped, 0, why)
            .ok(); // the run stays stopped without it
}

Status RunOpener::prepare(const RunSpec& spec)
{
    auto early = setUpRun(spec, 0); // refuses a bad model or setting before the data is read
    if (!early.ok())
        return early.status();
    auto data = readRunData(early.value().spec, early.value().config.vocab);
    if (!data.ok())
        return data.status();
    m_run.data = std::move(data).value();
    MR_ASSIGN(m_run.dataHash, dataHash(m_run.data.train));
    auto setup = setUpRun(spec, m_run.data.train.batchRows());
    if (!setup.ok())
        return setup.status();
    m_run.setup = std::move(setup).value();
    const RunSpec& run = m_run.setup.spec;
    m_run.schedule = {run.schedule, run.learningRate, run.warmupSteps, run.steps};
    return {};
}

Status RunOpener::refuseIfTooLarge() const
{
    if (m_run.setup.limit.empty())
        return {};
    auto report = planRun(m_run.setup.spec);
    std::string text = "the run does not fit: " + m_run.setup.limit;
    if (report.ok())
        for (const std::string& advice : report.value().advice)
            text += "\n  " + advice;
    return Status::error(ErrorKind::OutOfMemory, text);
}

} // namespace mr
