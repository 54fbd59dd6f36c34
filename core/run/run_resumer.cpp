#include "core/run/run_resumer.h"

#include "core/base/log.h"
#include "core/choose/replan.h"
#include "core/run/run_history.h"
#include "core/save/run_files.h"
#include "core/save/run_guard.h"
#include "core/store/resume_answer.h"
#include "core/telemetry/run_folder.h"

#include <millrace/run_reader.h>

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace mr {
namespace fs = std::filesystem;

RunResumer::RunResumer(RunContext& run, RunJournal& journal, RunOpener& opener,
    Replanner& replanner, CheckpointFallback& fallback, OutcomeWatch& outcome)
    : m_run(run)
    , m_journal(journal)
    , m_opener(opener)
    , m_replanner(replanner)
    , m_fallback(fallback)
    , m_outcome(outcome)
{
}

Status RunResumer::resume(const fs::path& runDir)
{
    MR_ASSIGN(auto spec, claim(runDir));
    const std::vector<GradientShape> recordedApart = m_run.products.apart;
    MR_TRY(findSaveDir(spec));
    // A record that does not say is of a run without a template, or from before there was a choice.
    MR_TRY(m_opener.prepare(withStyle(spec, RowStyle::Plain)));
    // The record does not say whether the user chose it, and it changes no number.
    const RunSpec& recorded = m_run.setup.spec;
    m_run.setup.asked.recompute = recomputeOf(RecomputeChoice::Auto,
        keepsInputsAlone(recorded.keepInputs, recorded.optimizer, recorded.policyOptions));
    MR_TRY(fitToBudget());
    const bool isBegun = m_fallback.hasCheckpoint();
    if (!isBegun)
        MR_TRY(startAgain());
    MR_TRY(m_opener.openBody(isBegun ? BodySource::Checkpoint : BodySource::Model));
    m_run.resumedMs = m_run.progress.activeMs;
    MR_TRY(refuseOtherData());
    MR_TRY(refuseOtherBase());
    MR_TRY(refuseIfDone());
    MR_TRY(enterInHistory());
    const bool isAsRecorded = !m_replanner.hasReports() && !isChanged(m_run.hooks.changes) &&
                              m_run.products.apart == recordedApart;
    return isAsRecorded ? Status() : m_journal.recordPlan();
}

// The spec of the record, with the changes of this life.
Result<RunSpec> RunResumer::claim(const fs::path& runDir)
{
    std::error_code error;
    m_run.runDir = fs::absolute(runDir, error);
    if (fs::exists(m_run.runDir / "run.json", error)) { // else readRunSpec() says it is none
        auto lock = claimRunFolder(m_run.runDir);
        MR_TRY(lock.status());
        m_run.lock = std::move(lock).value();
    }
    MR_ASSIGN(auto recorded, readRunSpec(m_run.runDir.string()));
    MR_ASSIGN(auto record, readRunRecord(m_run.runDir.string()));
    m_run.uuid = record.uuid;
    m_run.askedJson = record.askedJson;
    auto products = productVerdictFromJson(record.productsJson);
    if (!products.ok())
        return Status::error(ErrorKind::DataCorrupt,
            (m_run.runDir / "run.json").string() + ": " + products.status().message());
    m_run.products = std::move(products).value();
    return changed(std::move(recorded), m_run.hooks.changes);
}

Status RunResumer::enterInHistory()
{
    auto known = m_run.store.findRun(m_run.uuid);
    if (!known.ok())
        MR_TRY(m_journal.registerRun()); // another history: the run is entered there from here on
    else
        m_run.id = known.value();
    Status entered = enterMissingSteps(m_run.store, m_run.id, m_run.runDir, m_run.progress.step);
    if (entered.ok() && m_run.progress.step > 0)
        entered = enterCheckpoints(m_run.store, m_run.id, m_run.runDir, m_run.saveDir);
    if (!entered.ok())
        log(LogLevel::Warning, "the history lacks what the run folder has: " + entered.message());
    m_outcome.readEvaluations();
    return {};
}

// A run that has no checkpoint yet.
Status RunResumer::startAgain()
{
    RunPlaces places{m_run.uuid, m_run.runDir, {}};
    auto known = m_run.store.findRun(m_run.uuid);
    auto reader = RunReader::open(m_run.store.path());
    if (known.ok() && reader.ok()) {
        MR_ASSIGN(auto rows, reader.value()->checkpoints(known.value()));
        for (const CheckpointRow& row : rows)
            if (row.state != "deleted")
                places.checkpoints.emplace_back(row.path);
    }
    MR_TRY(mayStartAgain(places, m_run.saveDir));
    m_run.startedAgain = "The run ended before its first checkpoint: it starts again from the "
                         "beginning, as it was asked for then.";
    return {};
}

Status RunResumer::refuseOtherData() const
{
    const auto rows = static_cast<std::uint64_t>(m_run.data.train.batchRows());
    if (m_run.progress.sampler.count != rows)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "{}: gives {}{}, the run began with {}; put back the data it was started with",
                datasetPath(m_run.setup.spec), rows,
                m_run.setup.spec.pack ? " packed rows" : " sequences",
                m_run.progress.sampler.count));
    if (m_run.progress.dataHash != m_run.dataHash)
        return Status::error(ErrorKind::InvalidArgument,
            datasetPath(m_run.setup.spec) +
                ": is not the data the run began with (its tokens differ); put that back");
    return {};
}

Status RunResumer::refuseOtherBase() const
{
    // Empty before the first checkpoint.
    if (m_run.progress.baseHash.empty() || m_run.progress.baseHash == m_run.baseHash)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        m_run.setup.spec.modelDir +
            ": is not the model the run began with (its weights differ); put that back");
}

// A resumed run may be given less than it was planned with: takes a plan with the same bits.
Status RunResumer::fitToBudget()
{
    if (m_run.setup.limit.empty() || !isChanged(m_run.hooks.changes))
        return m_opener.refuseIfTooLarge();
    const MemoryPlan& plan = m_run.setup.memory;
    const bool isDevice = plan.bytes(Tier::Device) > m_run.setup.budget.deviceBytes;
    const Tier tier = isDevice ? Tier::Device : Tier::PinnedHost;
    const auto budget = isDevice ? m_run.setup.budget.deviceBytes : m_run.setup.budget.hostBytes;
    const ReplanScope scope = plan.window.isActive() ? ReplanScope::SamePolicy : ReplanScope::Exact;
    auto next = replan(m_run.setup, {tier, budget}, scope);
    if (!next.ok())
        return m_opener.refuseIfTooLarge();
    m_replanner.note("Resumed with another budget, which " + m_run.setup.spec.policy +
                     " as it was planned does not fit; goes on as policy " +
                     next.value().spec.policy);
    m_run.setup = std::move(next).value();
    return {};
}

// One that has made its last step may still lack its model: it was killed before that was written.
Status RunResumer::refuseIfDone() const
{
    if (m_run.progress.step < m_run.setup.spec.steps)
        return {};
    auto known = m_run.store.findRun(m_run.uuid);
    auto reader = RunReader::open(m_run.store.path());
    if (!known.ok() || !reader.ok())
        return {}; // another history: it is entered there, and its model written again
    auto row = reader.value()->run(known.value());
    if (!row.ok() || row.value().status != RunStatus::Done)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("{}: this run has done all of its {} steps; there is nothing to resume",
            m_run.runDir.string(), m_run.setup.spec.steps));
}

Status RunResumer::findSaveDir(const RunSpec& spec)
{
    m_run.saveDir = spec.saveDir.empty() ? m_run.runDir : fs::path(spec.saveDir);
    std::error_code error;
    const bool isThere = fs::is_directory(m_run.saveDir, error);
    if (m_run.saveDir == m_run.runDir || fs::equivalent(m_run.saveDir, m_run.runDir, error))
        return {};
    if (isThere && mayUseSaveDir(m_run.saveDir, m_run.runDir, m_run.uuid)) {
        MR_ASSIGN(m_run.saveLock, claimRunFolder(m_run.saveDir));
        return {};
    }
    if (!m_run.hooks.saveFolder.empty()) {
        if (isThere)
            m_run.saveDir = m_run.runDir;
        return {};
    }
    if (isThere)
        return Status::error(ErrorKind::InvalidArgument,
            (m_run.runDir / "run.json").string() + ": field \"save_dir\" names the folder " +
                m_run.saveDir.string() +
                ", which has no run.json of this run. If checkpoints are to be written there, "
                "say so with --checkpoint-dir " +
                m_run.saveDir.string() + ", or name another folder");
    return Status::error(ErrorKind::InvalidArgument,
        m_run.runDir.string() + ": the newest checkpoints of this run are in " +
            m_run.saveDir.string() +
            ", which is not there; bring it back, or go on from older ones with --checkpoint-dir");
}

} // namespace mr
