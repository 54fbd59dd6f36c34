// How a run goes on in the folder of an earlier life.

#include "core/base/log.h"
#include "core/choose/replan.h"
#include "core/run/engine.h"
#include "core/run/run_data.h"
#include "core/run/run_history.h"
#include "core/save/run_files.h"
#include "core/save/run_guard.h"
#include "core/store/resume_answer.h"
#include "core/telemetry/run_folder.h"

#include <millrace/run_reader.h>

#include <cmath>
#include <utility>

namespace mr {
namespace fs = std::filesystem;

Status Engine::prepareResume(const fs::path& runDir)
{
    std::error_code error;
    m_runDir = fs::absolute(runDir, error);
    if (fs::exists(m_runDir / "run.json", error)) { // else it is no run folder, as is said below
        auto lock = claimRunFolder(m_runDir);
        MR_TRY(lock.status());
        m_lock = std::move(lock).value();
    }
    auto recorded = readRunSpec(m_runDir.string());
    if (!recorded.ok())
        return recorded.status();
    const RunSpec spec = changed(std::move(recorded).value(), m_hooks.changes);
    auto record = readRunRecord(m_runDir.string());
    if (!record.ok())
        return record.status();
    m_uuid = record.value().uuid;
    m_askedJson = record.value().askedJson;
    MR_TRY(findSaveDir(spec));
    // A record that does not say is of a run without a template, or from before there was a choice.
    MR_TRY(prepareData(withStyle(spec, RowStyle::Plain)));
    // The record does not say who chose it, and it changes no number.
    m_setup.asked.recompute = RecomputeChoice::Auto;
    MR_TRY(fitToBudget());
    const bool isBegun = hasCheckpoint();
    if (!isBegun)
        MR_TRY(startAgain());
    MR_TRY(openFirst(isBegun ? Source::Checkpoint : Source::Model));
    m_resumedMs = m_progress.activeMs;
    m_evaluatedStep = m_progress.step - (std::isfinite(m_progress.evalLoss) ? 0 : 1);
    MR_TRY(refuseOtherData());
    MR_TRY(refuseIfDone());
    MR_TRY(enterInHistory());
    return m_replans.empty() && !isChanged(m_hooks.changes) ? Status() : recordPlan();
}

// The folder is the truth: a loss of power, a kill between two files, or another history leave the
// history behind it.
Status Engine::enterInHistory()
{
    auto known = m_store.findRun(m_uuid);
    if (!known.ok())
        MR_TRY(registerRun()); // another history: the run is entered there from here on
    else
        m_runId = known.value();
    Status entered = enterMissingSteps(m_store, m_runId, m_runDir, m_progress.step);
    if (entered.ok() && m_progress.step > 0)
        entered = enterCheckpoints(m_store, m_runId, m_runDir, m_saveDir);
    if (!entered.ok())
        log(LogLevel::Warning, "the history lacks what the run folder has: " + entered.message());
    readEvaluations();
    return {};
}

// A run that has no checkpoint yet.
Status Engine::startAgain()
{
    RunPlaces places{m_uuid, m_runDir, {}};
    auto known = m_store.findRun(m_uuid);
    auto reader = RunReader::open(m_store.path());
    if (known.ok() && reader.ok()) {
        auto rows = reader.value()->checkpoints(known.value());
        MR_TRY(rows.status());
        for (const CheckpointRow& row : rows.value())
            if (row.state != "deleted")
                places.checkpoints.emplace_back(row.path);
    }
    MR_TRY(mayStartAgain(places, m_saveDir));
    m_startedAgain = "The run ended before its first checkpoint: it starts again from the "
                     "beginning, as it was asked for then.";
    return {};
}

Status Engine::refuseOtherData() const
{
    const auto rows = static_cast<std::uint64_t>(m_data.train.batchRows());
    if (m_progress.sampler.count != rows)
        return Status::error(ErrorKind::InvalidArgument,
            datasetPath(m_setup.spec) + ": gives " + std::to_string(rows) +
                (m_setup.spec.pack ? " packed rows" : " sequences") + ", the run began with " +
                std::to_string(m_progress.sampler.count) +
                "; put back the data it was started with");
    if (m_progress.dataHash != m_dataHash)
        return Status::error(ErrorKind::InvalidArgument,
            datasetPath(m_setup.spec) +
                ": is not the data the run began with (its tokens differ); put that back");
    return {};
}

// A resumed run may be given less than it was planned with: whatever goes on with the same bits.
Status Engine::fitToBudget()
{
    if (m_setup.limit.empty() || !isChanged(m_hooks.changes))
        return refuseIfTooLarge();
    const MemoryPlan& plan = m_setup.memory;
    const bool isDevice = plan.bytes(Tier::Device) > m_setup.budget.deviceBytes;
    const Tier tier = isDevice ? Tier::Device : Tier::PinnedHost;
    const auto budget = isDevice ? m_setup.budget.deviceBytes : m_setup.budget.hostBytes;
    const ReplanScope scope = plan.window.isActive() ? ReplanScope::SamePolicy : ReplanScope::Exact;
    auto next = replan(m_setup, {tier, budget}, scope);
    if (!next.ok())
        return refuseIfTooLarge();
    m_replans.push_back("Resumed with another budget, which " + m_setup.spec.policy +
                        " as it was planned does not fit; goes on as policy " +
                        next.value().spec.policy);
    m_setup = std::move(next).value();
    return {};
}

// One that has made its last step may still lack its model: it was killed before that was written.
Status Engine::refuseIfDone()
{
    if (m_progress.step < m_setup.spec.steps)
        return {};
    auto known = m_store.findRun(m_uuid);
    auto reader = RunReader::open(m_store.path());
    if (!known.ok() || !reader.ok())
        return {}; // another history: it is entered there, and its model written again
    auto row = reader.value()->run(known.value());
    if (!row.ok() || row.value().status != RunStatus::Done)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        m_runDir.string() + ": this run has done all of its " + std::to_string(m_setup.spec.steps) +
            " steps; there is nothing to resume");
}

Status Engine::findSaveDir(const RunSpec& spec)
{
    m_saveDir = spec.saveDir.empty() ? m_runDir : fs::path(spec.saveDir);
    std::error_code error;
    const bool isThere = fs::is_directory(m_saveDir, error);
    if (m_saveDir == m_runDir || fs::equivalent(m_saveDir, m_runDir, error))
        return {};
    if (isThere && mayUseSaveDir(m_saveDir, m_runDir, m_uuid)) {
        auto lock = claimRunFolder(m_saveDir);
        MR_TRY(lock.status());
        m_saveLock = std::move(lock).value();
        return {};
    }
    if (!m_hooks.saveFolder.empty()) {
        if (isThere)
            m_saveDir = m_runDir;
        return {};
    }
    if (isThere)
        return Status::error(ErrorKind::InvalidArgument,
            (m_runDir / "run.json").string() + ": field \"save_dir\" names the folder " +
                m_saveDir.string() +
                ", which has no run.json of this run. If checkpoints are to be written there, "
                "say so with --checkpoint-dir " +
                m_saveDir.string() + ", or name another folder");
    return Status::error(ErrorKind::InvalidArgument,
        m_runDir.string() + ": the newest checkpoints of this run are in " + m_saveDir.string() +
            ", which is not there; bring it back, or go on from older ones with --checkpoint-dir");
}

} // namespace mr
