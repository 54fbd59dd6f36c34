// What a run does where memory lacks: it plans again with less and goes on.
//
// When the run opens, or is opened again, an allocation that fails although the plan fits its
// budget means that somebody else took the memory: another plan is made for what is left. Later,
// in a step or an evaluation, the run saves itself if no update of the step was begun, gives
// everything back, and opens again from there; else it goes back to the last checkpoint. Exact
// policies end with the bits they would have ended with. Opening again is also how a running run
// exchanges its plan (engine_choice.cpp).

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/thread.h"
#include "core/choose/replan.h"
#include "core/run/engine.h"

#include <algorithm>
#include <utility>

namespace mr {
namespace {

constexpr int kMostReplans = 8;    // while a run opens: each takes a tenth
constexpr int kMostRecoveries = 3; // without a completed step between them
constexpr std::int64_t kShowNs = 100'000'000;

std::string words(const RunSetup& setup)
{
    std::string text = "policy " + setup.spec.policy;
    for (const auto& [option, value] : setup.spec.policyOptions)
        text.append(" ").append(option).append("=").append(value);
    if (setup.spec.recompute == RecomputeChoice::Block)
        text += ", recompute block";
    return text + " (device " + formatBytes(setup.memory.bytes(Tier::Device)) + ", host " +
           formatBytes(setup.memory.bytes(Tier::PinnedHost)) + ")";
}

std::string stepWords(StepIndex step)
{
    return step == 0 ? "the beginning" : "step " + std::to_string(step);
}

std::string repeatedWords(StepIndex first, StepIndex last)
{
    if (first == last)
        return "step " + std::to_string(first) + " is repeated";
    return "steps " + std::to_string(first) + " to " + std::to_string(last) + " are repeated";
}

RunBodyParts bodyOf(const RunSetup& setup, const RunDiskSpec& disk)
{
    const RunSpec& spec = setup.spec;
    return {setup.config, setup.table, setup.micro, setup.shape, setup.step, setup.policy,
        setup.budget, setup.rates, setup.memory,
        static_cast<int>(std::max<std::int64_t>(1, spec.threads / 2)),
        {spec.beta1, spec.beta2, spec.eps, spec.weightDecay},
        {spec.schedule, spec.learningRate, spec.warmupSteps, spec.steps}, &disk};
}

// Folders without room are left out; those that could not be looked at are refused where the files
// are made.
void nameFolders(const RunSetup& setup, RunDiskSpec& disk)
{
    const std::vector<double> parts = setup.scratch.divide(setup.memory.bytes(Tier::Disk));
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i] > 0.0) {
            disk.folders.push_back(setup.scratch.members[i].folder.path);
            disk.shares.push_back(parts[i]);
        }
    if (disk.folders.empty())
        disk.folders.assign(setup.spec.diskPaths.begin(), setup.spec.diskPaths.end());
}

} // namespace

Status Engine::tryBody(Source source, Tier& lacking)
{
    RunDiskSpec disk;
    nameFolders(m_setup, disk);
    disk.runId = m_uuid;
    disk.scratch = scratchOptions();
    if (m_setup.numbers.verify == VerifyReads::All)
        disk.store.verify = DiskVerify::All;
    auto body = RunBody::create(m_device, bodyOf(m_setup, disk), lacking);
    MR_TRY(body.status());
    m_body = std::move(body).value();
    if (source == Source::Checkpoint) {
        MR_TRY(loadNewestCheckpoint());
    } else {
        MR_TRY(prepareWeights());
        m_progress = firstProgress();
        m_savedStep = -1;
    }
    Carry carry = m_progress.carry;
    carry.step = m_progress.step;
    m_body->plans().startAfter(carry);
    return {};
}

// By a call, or by who waits for the run to open.
bool Engine::isStopWanted() const
{
    const auto& isCancelled = m_hooks.opening.isCancelled;
    return m_stopRequested || (isCancelled && isCancelled());
}

ScratchOptions Engine::scratchOptions()
{
    ScratchOptions options;
    options.cancelled = [this] { return isStopWanted(); };
    if (m_hooks.opening.onScratchFill)
        options.progress = [this, shownNs = std::int64_t{0}](
                               std::uint64_t done, std::uint64_t all) mutable {
            const std::int64_t now = nowNs();
            if (done < all && now - shownNs < kShowNs)
                return;
            shownNs = now;
            m_hooks.opening.onScratchFill(done, all);
        };
    return options;
}

Status Engine::openBody(Source source)
{
    for (int replans = 0;; ++replans) {
        Tier lacking = Tier::Device;
        Status status = tryBody(source, lacking);
        if (status.ok())
            return {};
        dropBody(); // first: what is free then is what a new plan may have
        if (status.kind() != ErrorKind::OutOfMemory || replans == kMostReplans)
            return status;
        MR_TRY(planAgain(status, lacking));
    }
}

// Another setup for what memory is left. Precondition: there is no body.
Status Engine::planAgain(const Status& why, Tier lacking)
{
    MemoryShortage shortage{lacking, {}};
    if (lacking == Tier::Device)
        shortage.freeBytes = m_device.freeDeviceBytes();
    ReplanScope scope = ReplanScope::Any;
    if (hasCheckpoint())
        scope = m_setup.memory.window.isActive() ? ReplanScope::SamePolicy : ReplanScope::Exact;
    auto next = replan(m_setup, shortage, scope);
    if (!next.ok())
        return Status::error(next.status().kind(), why.message() + "; " + next.status().message());
    m_replans.push_back("Out of memory: " + why.message() + ". Planned as " + words(m_setup) +
                        "; goes on as " + words(next.value()));
    m_setup = std::move(next).value();
    return {};
}

// Returns `why` unless it is memory that lacks.
Status Engine::recover(const Status& why)
{
    if (!m_body || why.kind() != ErrorKind::OutOfMemory)
        return why;
    if (m_recoveries++ == kMostRecoveries)
        return Status::error(ErrorKind::OutOfMemory,
            "out of memory " + std::to_string(m_recoveries) +
                " times without a step in between; the last time: " + why.message());
    const StepIndex reached = m_progress.step;
    if (!m_body->settle(reached) || !saveBeforeTeardown())
        m_body->abandon(why);
    tearDown();
    if (!planAgain(why, Tier::Device).ok())
        m_replans.push_back(
            "Out of memory: " + why.message() +
            ". Nothing smaller fits; the same plan is tried again: " + words(m_setup));
    return reopen(reached);
}

void Engine::tearDown()
{
    m_batches->close();
    m_batches.reset();
    dropBody();
}

void Engine::dropBody()
{
    if (m_body) {
        const DiskTasks::Moved moved = m_body->executor().diskMoved();
        m_movedBefore.diskRead += moved.readBytes;
        m_movedBefore.diskWritten += moved.writtenBytes;
    }
    m_body.reset();
}

// The run goes on as m_setup says, from the newest checkpoint. `reached` is the step it had come
// to.
Status Engine::reopen(StepIndex reached)
{
    const std::int64_t begin = nowNs();
    MR_TRY(openBody(hasCheckpoint() ? Source::Checkpoint : Source::Model));
    m_evaluatedStep = std::min(m_evaluatedStep, m_progress.step);
    std::string after = ", from " + stepWords(m_progress.step);
    if (m_progress.step < reached) {
        after += "; " + repeatedWords(m_progress.step + 1, reached);
        // A history that fails was reported, and is no reason to stop.
        (void)m_recorder->flush().ok();
        (void)m_store.rewind(m_runId, m_progress.step).ok();
    }
    MR_TRY(recordPlan());
    startBatches();
    reportReplans(after);
    m_watch.reopened(1e-9 * static_cast<double>(nowNs() - begin));
    book(IntervalKind::Replan);
    return {};
}

// True: the newest checkpoint is of the step the run has come to.
bool Engine::saveBeforeTeardown()
{
    if (m_progress.step == 0 || m_savedStep == m_progress.step)
        return true; // the model it began with is on disk, too
    const Status saved =
        guarded("checkpoint", [this] { return saveCheckpoint(IfUnwritable::Pause); });
    return saved.ok() && m_savedStep == m_progress.step;
}

void Engine::reportReplans(const std::string& after)
{
    const std::int64_t timeMs = m_startNs == 0 ? m_resumedMs : activeMs();
    for (const std::string& text : std::exchange(m_replans, {}))
        m_recorder->message(
            EventLevel::Warning, "memory_replanned", m_progress.step, timeMs, text + after + ".");
    reportBroken(timeMs);
}

} // namespace mr
