#include "core/run/replanner.h"

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/thread.h"
#include "core/choose/replan.h"
#include "core/choose/trained_part.h"
#include "core/model/dora.h"
#include "core/model/peft_folder.h"
#include "core/model/prepared_base.h"
#include "core/model/weights.h"
#include "core/step/run_master.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mr {
namespace {

constexpr int kMostReplans = 8;    // while a run opens: each takes a tenth
constexpr int kMostRecoveries = 3; // without a completed step between them

std::string words(const RunSetup& setup)
{
    std::string text = "policy " + setup.spec.policy;
    for (const auto& [option, value] : setup.spec.policyOptions)
        text.append(" ").append(option).append("=").append(value);
    if (setup.step.recompute != Recompute::None)
        text.append(", recompute ").append(name(setup.step.recompute));
    return text + " (device " + formatBytes(setup.memory.bytes(Tier::Device)) + ", host " +
           formatBytes(setup.memory.bytes(Tier::PinnedHost)) + ")";
}

std::string stepWords(StepIndex step)
{
    return step == 0 ? "the beginning" : fmt::format("step {}", step);
}

std::string repeatedWords(StepIndex first, StepIndex last)
{
    if (first == last)
        return fmt::format("step {} is repeated", first);
    return fmt::format("steps {} to {} are repeated", first, last);
}

} // namespace

Replanner::Replanner(RunContext& run, RunJournal& journal, RunSaver& saver,
    CheckpointFallback& fallback, StepLoop& steps, BodyMaker& maker)
    : m_run(run)
    , m_journal(journal)
    , m_saver(saver)
    , m_fallback(fallback)
    , m_steps(steps)
    , m_maker(maker)
{
}

Status Replanner::openBody(BodySource source)
{
    for (int replans = 0;; ++replans) {
        Tier lacking = Tier::Device;
        Status status = m_maker.make(source, lacking);
        if (status.ok())
            return {};
        dropBody(); // first: a new plan may have the memory that is free then
        if (status.kind() != ErrorKind::OutOfMemory || replans == kMostReplans)
            return status;
        MR_TRY(planAgain(status, lacking));
    }
}

// Another setup for the memory that is left. Precondition: there is no body.
Status Replanner::planAgain(const Status& why, Tier lacking)
{
    MemoryShortage shortage{lacking, {}};
    if (lacking == Tier::Device)
        shortage.freeBytes = m_run.device.freeDeviceBytes();
    ReplanScope scope = ReplanScope::Any;
    if (m_fallback.hasCheckpoint())
        scope = m_run.setup.memory.window.isActive() ? ReplanScope::SamePolicy : ReplanScope::Exact;
    auto next = replan(m_run.setup, shortage, scope);
    if (!next.ok())
        return Status::error(next.status().kind(), why.message() + "; " + next.status().message());
    note("Out of memory: " + why.message() + ". Planned as " + words(m_run.setup) +
         "; goes on as " + words(next.value()));
    m_run.setup = std::move(next).value();
    return {};
}

Status Replanner::recover(const Status& why)
{
    if (!m_run.body || why.kind() != ErrorKind::OutOfMemory)
        return why;
    if (std::exchange(m_completed, m_steps.completed()) != m_steps.completed())
        m_recoveries = 0;
    if (m_recoveries++ == kMostRecoveries)
        return Status::error(ErrorKind::OutOfMemory,
            fmt::format("out of memory {} times without a step in between; the last time: {}",
                m_recoveries, why.message()));
    const StepIndex reached = m_run.progress.step;
    if (!m_run.body->settle(reached) || !saveBeforeTeardown())
        m_run.body->abandon(why);
    tearDown();
    if (!planAgain(why, Tier::Device).ok())
        note("Out of memory: " + why.message() +
             ". Nothing smaller fits; the same plan is tried again: " + words(m_run.setup));
    return reopen(reached);
}

void Replanner::tearDown()
{
    m_steps.closeBatches();
    dropBody();
}

void Replanner::dropBody()
{
    if (m_run.body)
        m_journal.keepMoved();
    m_run.body.reset();
}

// The run goes on as m_run.setup says, from the newest checkpoint. `reached` is the step it had
// come to.
Status Replanner::reopen(StepIndex reached)
{
    const std::int64_t begin = nowNs();
    MR_TRY(openBody(m_fallback.hasCheckpoint() ? BodySource::Checkpoint : BodySource::Model));
    m_steps.noteReopened();
    std::string after = ", from " + stepWords(m_run.progress.step);
    if (m_run.progress.step < reached) {
        after += "; " + repeatedWords(m_run.progress.step + 1, reached);
        m_journal.flush();
        (void)m_run.store.rewind(m_run.id, m_run.progress.step).ok();
    }
    MR_TRY(m_journal.recordPlan());
    m_steps.startBatches();
    report(after);
    m_run.watch.reopened(1e-9 * static_cast<double>(nowNs() - begin));
    m_journal.book(IntervalKind::Replan);
    return {};
}

// True: the newest checkpoint is of the step the run has come to.
bool Replanner::saveBeforeTeardown()
{
    if (m_run.progress.step == 0 || m_saver.isSaved())
        return true; // the model it began with is on disk, too
    const Status saved =
        guarded("checkpoint", [this] { return m_saver.saveCheckpoint(IfUnwritable::Pause); });
    return saved.ok() && m_saver.isSaved();
}

void Replanner::report(const std::string& after)
{
    for (const std::string& text : std::exchange(m_reports, {}))
        m_journal.message(EventLevel::Warning, "memory_replanned", text + after + ".");
    m_fallback.report();
}

Result<bool> Replanner::exchange(RunSetup next, IfUnwritable then)
{
    const StepIndex reached = m_run.progress.step;
    if (!m_saver.isSaved())
        MR_TRY(m_saver.saveCheckpoint(then));
    if (!m_saver.isSaved())
        return false;
    tearDown();
    m_run.setup = std::move(next);
    MR_TRY(reopen(reached));
    return true;
}

} // namespace mr
