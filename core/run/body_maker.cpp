#include "core/run/body_maker.h"

#include "core/base/clock.h"
#include "core/model/dora.h"
#include "core/model/peft_folder.h"
#include "core/model/prepared_base.h"
#include "core/model/weights.h"
#include "core/run/run_model.h"
#include "core/step/run_master.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mr {
namespace {

constexpr std::int64_t kShowNs = 100'000'000;

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

// Puts a group into its home among the weights that no step changes.
Status putFrozen(
    StepExecutor& executor, const ParamTable& table, GroupId group, MasterReader& master)
{
    MasterPiece piece;
    return forPieces(master, {group, 0, frozenElements(table, group)}, piece,
        [&](std::int64_t first, const MasterView& view) {
            return executor.state().writeFrozen(group, first, view);
        });
}

} // namespace

BodyMaker::BodyMaker(RunContext& run, RunSaver& saver, CheckpointFallback& fallback)
    : m_run(run)
    , m_saver(saver)
    , m_fallback(fallback)
{
}

Status BodyMaker::make(BodySource source, Tier& lacking)
{
    m_base.reset();
    if (m_run.setup.turns.isActive())
        MR_TRY(takeTurn(m_run.setup, m_run.setup.turns.schedule.groupOf(0)));
    RunDiskSpec disk;
    MR_ASSIGN(const TrainingStateParts parts, partsOf({}, disk));
    auto body = TrainingState::create(m_run.device, parts, lacking);
    MR_TRY(body.status());
    m_run.body = std::move(body).value();
    if (isAdapterRun(m_run.setup.spec))
        MR_TRY(installBase());
    const bool fromCheckpoint = source == BodySource::Checkpoint;
    MR_TRY(fromCheckpoint ? load() : startFromModel());
    m_saver.noteLoaded(fromCheckpoint);
    Carry carry = m_run.progress.carry;
    carry.step = m_run.progress.step;
    m_run.body->plans().startAfter(carry);
    return {};
}

// `disk` is lent to the parts. `turned`: groups that have files.
Result<TrainingStateParts> BodyMaker::partsOf(
    const std::vector<TurnedGroup>& turned, RunDiskSpec& disk)
{
    const RunSetup& setup = m_run.setup;
    nameFolders(setup, disk);
    disk.runId = m_run.uuid;
    disk.scratch = scratchOptions();
    if (!setup.memory.disk.frozen.empty()) {
        if (!m_base) { // finding a prepared file reads all of it
            MR_ASSIGN(m_base, baseFiles(disk.scratch));
        }
        disk.base = *m_base;
        MR_TRY(takeTurned(foldersOf(m_run), turned, setup.micro.compute, disk.base));
    }
    if (setup.numbers.verify == VerifyReads::All)
        disk.store.verify = DiskVerify::All;
    TrainingStateParts parts = bodyOf(setup, disk);
    parts.apart = {m_run.products.apart, m_run.productScratch.data()};
    return parts;
}

Status BodyMaker::load()
{
    if (!m_run.setup.turns.isActive())
        return m_fallback.loadNewest();
    MR_ASSIGN(const Master first, openFirstModel(m_run.setup)); // else no checkpoint is of any use
    return m_fallback.loadNewest(
        [&](const RunProgress& progress) { return prepareTurn(progress, *first); });
}

Status BodyMaker::startFromModel()
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

Status BodyMaker::startWeights()
{
    const RunSetup& setup = m_run.setup;
    MR_ASSIGN(const Master weights, openFirstModel(setup));
    StepExecutor& executor = m_run.body->executor();
    MR_TRY(installMaster(executor, m_run.body->memory(), *weights));
    MR_ASSIGN(std::string hash, installFrozen(executor, setup.table, *weights));
    if (setup.turns.isActive()) // a run of some layers can go on without its first model
        m_run.baseHash = std::move(hash);
    return {};
}

// A fresh one, or that of the folder the run goes on from.
Status BodyMaker::startAdapter()
{
    const RunSpec& spec = m_run.setup.spec;
    const ParamTable& table = m_run.setup.table;
    Master model;
    Master adapter;
    if (spec.adapterDir.empty()) {
        MR_ASSIGN(model, openFirstModel(m_run.setup));
        adapter = freshAdapter(table, spec.seed, *model, m_run.setup.micro.compute);
    } else {
        MR_ASSIGN(const PeftConfig config, readPeftConfig(spec.adapterDir));
        MR_TRY(checkBase(spec.adapterDir, config, spec.modelDir, m_run.baseHash));
        MR_ASSIGN(adapter, openPeftWeights(spec.adapterDir, table));
    }
    return installMaster(m_run.body->executor(), m_run.body->memory(), *adapter);
}

// The model beside an adapter, from its own files.
Status BodyMaker::installBase()
{
    const RunSetup& setup = m_run.setup;
    MR_ASSIGN(const Master weights, openFirstModel(setup));
    MR_ASSIGN(m_run.baseHash, installFrozen(m_run.body->executor(), setup.table, *weights));
    return checkFiles();
}

// The files that were just read are those that steps read.
Status BodyMaker::checkFiles()
{
    return m_run.body->disk() ? m_run.body->disk()->checkFiles() : Status();
}

// The body of the turn that a checkpoint is of; its state is not loaded.
Status BodyMaker::prepareTurn(const RunProgress& progress, MasterReader& first)
{
    const std::vector<GroupId>& groups = m_run.setup.turns.schedule.groups;
    for (const TurnedGroup& turned : progress.turned)
        if (!std::ranges::binary_search(groups, turned.group))
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("the checkpoint has trained layer {}, which is none of those that take "
                            "turns in this run",
                    turned.group.value));
    MR_TRY(verifyTurned(foldersOf(m_run), progress.turned));
    MR_TRY(exchangeGroup(progress.turn, progress.turned));
    StepExecutor& executor = m_run.body->executor();
    MR_ASSIGN(m_run.baseHash, installFrozen(executor, m_run.setup.table, first));
    MR_ASSIGN(const Master now, openTurned(foldersOf(m_run), progress.turned, first));
    for (const TurnedGroup& turned : progress.turned)
        MR_TRY(putFrozen(executor, m_run.setup.table, turned.group, *now));
    return checkFiles();
}

Status BodyMaker::exchangeGroup(std::int64_t turn, const std::vector<TurnedGroup>& turned)
{
    MR_TRY(takeTurn(m_run.setup, m_run.setup.turns.schedule.groupOf(turn)));
    RunDiskSpec disk;
    MR_ASSIGN(const TrainingStateParts parts, partsOf(turned, disk));
    return m_run.body->turnTo(parts);
}

Status BodyMaker::turnTo(std::int64_t turn)
{
    const Status turned = takeNext(turn);
    if (!turned.ok())
        m_run.body.reset();
    return turned;
}

Status BodyMaker::takeNext(std::int64_t turn)
{
    RunProgress& progress = m_run.progress;
    const GroupId before = m_run.setup.turns.trained;
    MR_TRY(exchangeGroup(turn, progress.turned));
    MR_ASSIGN(const Master first, openFirstModel(m_run.setup));
    MR_ASSIGN(const Master now, openTurned(foldersOf(m_run), progress.turned, *first));
    StepExecutor& executor = m_run.body->executor();
    MR_TRY(putFrozen(executor, m_run.setup.table, before, *now));
    MR_TRY(installMaster(executor, m_run.body->memory(), *now));
    progress.turn = turn;
    progress.updateCount = 0;
    Carry carry;
    carry.step = progress.step;
    m_run.body->plans().startAfter(carry);
    return {};
}

// The model's own files, or those that are prepared from them.
Result<BaseFiles> BodyMaker::baseFiles(const ScratchOptions& options)
{
    const RunSetup& setup = m_run.setup;
    const ParamTable& model = modelOf(setup);
    const ParamTable read = readTable(setup);
    if (setup.readsOwnFiles) {
        MR_ASSIGN(auto own, ownFiles(setup.spec.modelDir, setup.config, read, setup.micro.compute));
        if (own)
            return std::move(*own);
    }
    if (setup.spec.diskPaths.empty())
        return Status::error(ErrorKind::InvalidArgument,
            setup.spec.modelDir + ": the frozen weights of this run are read from disk in a form "
                                  "that these files do not have; name a folder on an SSD "
                                  "(--disk-path) for a file that has it");
    PreparedBaseSpec spec{read, setup.micro.compute, setup.spec.diskPaths.front()};
    MR_ASSIGN(spec.source, weightStamp(setup.spec.modelDir, setup.config, setup.table));
    spec.open = [&] { return openWeights(setup.spec.modelDir, setup.config, model); };
    spec.progress = options.progress;
    spec.cancelled = options.cancelled;
    return preparedBase(spec);
}

ScratchOptions BodyMaker::scratchOptions()
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

} // namespace mr
