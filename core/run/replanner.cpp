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
constexpr std::int64_t kShowNs = 100'000'000;

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

TrainingStateParts bodyOf(const RunSetup& setup, const RunDiskSpec& disk)
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
    const std::vector<double> parts = setup.scratch.divide(setup.memory.scratchBytes());
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i] > 0.0) {
            disk.folders.push_back(setup.scratch.members[i].folder.path);
            disk.shares.push_back(parts[i]);
        }
    if (disk.folders.empty())
        disk.folders.assign(setup.spec.diskPaths.begin(), setup.spec.diskPaths.end());
}

} // namespace

Replanner::Replanner(RunContext& run, RunJournal& journal, RunSaver& saver,
    CheckpointFallback& fallback, StepLoop& steps)
    : m_run(run)
    , m_journal(journal)
    , m_saver(saver)
    , m_fallback(fallback)
    , m_steps(steps)
{
}

Status Replanner::tryBody(BodySource source, Tier& lacking)
{
    RunDiskSpec disk;
    nameFolders(m_run.setup, disk);
    disk.runId = m_run.uuid;
    disk.scratch = scratchOptions();
    if (!m_run.setup.memory.disk.frozen.empty()) {
        MR_ASSIGN(disk.base, baseFiles(disk.scratch));
    }
    if (m_run.setup.numbers.verify == VerifyReads::All)
        disk.store.verify = DiskVerify::All;
    TrainingStateParts parts = bodyOf(m_run.setup, disk);
    parts.apart = {m_run.products.apart, m_run.productScratch.data()};
    auto body = TrainingState::create(m_run.device, parts, lacking);
    MR_TRY(body.status());
    m_run.body = std::move(body).value();
    if (isAdapterRun(m_run.setup.spec))
        MR_TRY(installBase());
    const bool fromCheckpoint = source == BodySource::Checkpoint;
    MR_TRY(fromCheckpoint ? m_fallback.loadNewest() : startFromModel());
    m_saver.noteLoaded(fromCheckpoint);
    Carry carry = m_run.progress.carry;
    carry.step = m_run.progress.step;
    m_run.body->plans().startAfter(carry);
    return {};
}

Status Replanner::startFromModel()
{
    const RunSpec& spec = m_run.setup.spec;
    MR_TRY(isAdapterRun(spec) ? startAdapter() : startWeights());
    RunProgress first;
    first.sampler = {spec.seed, 0, 0, static_cast<std::uint64_t>(m_run.data.train.batchRows())};
    first.dataHash = m_run.dataHash;
    first.instructionSet = m_run.device.info().instructionSet;
    first.precision = std::string(name(spec.precision));
    m_run.progress = std::move(first);
    return {};
}

Status Replanner::startWeights()
{
    const RunSetup& setup = m_run.setup;
    const ParamTable& model = wholeModel(setup.table);
    std::unique_ptr<MasterReader> weights;
    if (setup.spec.modelDir.empty()) {
        weights = initialWeights(setup.config, model, setup.spec.seed);
    } else {
        MR_ASSIGN(weights, openWeights(setup.spec.modelDir, setup.config, model));
    }
    StepExecutor& executor = m_run.body->executor();
    MR_TRY(installMaster(executor, m_run.body->memory(), *weights));
    return installFrozen(executor, setup.table, *weights).status();
}

// A fresh one, or that of the folder the run goes on from.
Status Replanner::startAdapter()
{
    const RunSpec& spec = m_run.setup.spec;
    const ParamTable& table = m_run.setup.table;
    std::unique_ptr<MasterReader> model;
    std::unique_ptr<MasterReader> adapter;
    if (spec.adapterDir.empty()) {
        MR_ASSIGN(model, openWeights(spec.modelDir, m_run.setup.config, wholeModel(table)));
        adapter = freshAdapter(table, spec.seed, *model, m_run.setup.micro.compute);
    } else {
        MR_ASSIGN(const PeftConfig config, readPeftConfig(spec.adapterDir));
        MR_TRY(checkBase(spec.adapterDir, config, spec.modelDir, m_run.baseHash));
        MR_ASSIGN(adapter, openPeftWeights(spec.adapterDir, table));
    }
    return installMaster(m_run.body->executor(), m_run.body->memory(), *adapter);
}

// The model beside an adapter, from its own files.
Status Replanner::installBase()
{
    const RunSetup& setup = m_run.setup;
    MR_ASSIGN(const auto weights,
        openWeights(setup.spec.modelDir, setup.config, wholeModel(setup.table)));
    MR_ASSIGN(m_run.baseHash, installFrozen(m_run.body->executor(), setup.table, *weights));
    // The files that were just read are those that steps read.
    return m_run.body->disk() ? m_run.body->disk()->checkFiles() : Status();
}

// The model's own files, or those that are prepared from them.
Result<BaseFiles> Replanner::baseFiles(const ScratchOptions& options)
{
    const RunSetup& setup = m_run.setup;
    const ParamTable& model = wholeModel(setup.table);
    if (setup.readsOwnFiles) {
        MR_ASSIGN(auto own,
            ownFiles(setup.spec.modelDir, setup.config, setup.table, setup.micro.compute));
        if (own)
            return std::move(*own);
    }
    if (setup.spec.diskPaths.empty())
        return Status::error(ErrorKind::InvalidArgument,
            setup.spec.modelDir + ": the frozen weights of this run are read from disk in a form "
                                  "that these files do not have; name a folder on an SSD "
                                  "(--disk-path) for a file that has it");
    PreparedBaseSpec spec{setup.table, setup.micro.compute, setup.spec.diskPaths.front()};
    MR_ASSIGN(spec.source, weightStamp(setup.spec.modelDir, setup.config, setup.table));
    spec.open = [&] { return openWeights(setup.spec.modelDir, setup.config, model); };
    spec.progress = options.progress;
    spec.cancelled = options.cancelled;
    return preparedBase(spec);
}

ScratchOptions Replanner::scratchOptions()
{
    ScratchOptions options;
    options.cancelled = [this] { return m_run.isStopWanted(); };
    if (m_run.hooks.opening.onScratchFill)
        options.progress = [this, shownNs = std::int64_t{0}](
                               std::uint64_t done, std::uint64_t all) mutable {
            const std::int64_t now = nowNs();
            if (done < all && now - shownNs < kShowNs)
                return;
            shownNs = now;
            m_run.hooks.opening.onScratchFill(done, all);
        };
    return options;
}

Status Replanner::openBody(BodySource source)
{
    for (int replans = 0;; ++replans) {
        Tier lacking = Tier::Device;
        Status status = tryBody(source, lacking);
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
