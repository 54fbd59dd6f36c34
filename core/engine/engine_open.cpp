// How a run comes to be: from a spec, or from the folder of an earlier life.

#include "core/base/file.h"
#include "core/data/chat_format.h"
#include "core/data/columns.h"
#include "core/engine/checkpoint_size.h"
#include "core/engine/engine.h"
#include "core/engine/hold_out.h"
#include "core/engine/run_files.h"
#include "core/engine/run_master.h"
#include "core/model/weights.h"
#include "core/telemetry/run_folder.h"
#include "core/tier/disk_wear.h"
#include "core/tier/scratch_file.h"

#include <millrace/library.h>
#include <millrace/planner.h>
#include <millrace/run_reader.h>

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <span>

namespace mr {
namespace fs = std::filesystem;
namespace {

std::string modelFolder(const RunSpec& spec)
{
    return spec.modelDir.empty() ? spec.scratchTokenizer : spec.modelDir;
}

// How rows are written is decided when a run begins and kept in its record.
RunSpec withStyle(RunSpec spec, RowStyle style)
{
    for (auto* sources : {&spec.data, &spec.evalData})
        for (DataSource& source : *sources)
            settleStyle(source, style);
    return spec;
}

Result<TokenSet> tokens(
    const std::vector<DataSource>& sources, const Tokenizer& tokenizer, const RunSpec& spec)
{
    TokenSetOptions options;
    options.seqLen = spec.seqLen;
    options.split = spec.split;
    options.modelFolder = modelFolder(spec);
    return buildTokenSet(sources, tokenizer, options);
}

// What the sampler draws from, so that a resumed run sees what it would have seen.
Result<std::string> hashOf(const TokenSet& set)
{
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
        XXH3_createState(), &XXH3_freeState);
    const auto add = [&state](const auto& values) {
        const auto bytes = std::as_bytes(std::span(values));
        (void)XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
    };
    // All tokens, then all flags, then where sequences begin, each seeded by the hash before.
    XXH64_hash_t hash = 0;
    TokenSequence sequence;
    for (const bool flags : {false, true}) {
        (void)XXH3_64bits_reset_withSeed(state.get(), hash);
        for (std::int64_t i = 0; i < set.count(); ++i) {
            MR_TRY(set.sequences.read(i, sequence));
            flags ? add(sequence.trained) : add(sequence.tokens);
        }
        hash = XXH3_64bits_digest(state.get());
    }
    (void)XXH3_64bits_reset_withSeed(state.get(), hash);
    std::array<std::uint64_t, 1> start{};
    add(start);
    for (std::int64_t i = 0; i < set.count(); ++i) {
        start[0] += set.sequences.length(i);
        add(start);
    }
    hash = XXH3_64bits_digest(state.get());
    std::array<char, 17> text{};
    (void)std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
    return std::string(text.data());
}

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
        runDir.string() + ": " + std::to_string(free.value() >> 20) +
            " MiB are free, checkpoints of this run need " + std::to_string(needed >> 20) +
            " MiB; free some space or choose another folder with --out");
}

} // namespace

Result<std::unique_ptr<Session>> Session::open(
    const RunSpec& spec, Device& device, RunStore& store, Listener listener, OpeningWatch watch)
{
    EngineHooks hooks;
    hooks.listener = std::move(listener);
    hooks.opening = std::move(watch);
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
    const bool hasTemplate = ChatFormat::isIn(modelFolder(spec));
    MR_TRY(engine->prepareData(hasTemplate ? withStyle(spec, RowStyle::Template) : spec));
    auto runDir = makeRunDir(engine->m_setup.spec);
    if (!runDir.ok())
        return runDir.status();
    engine->m_runDir = std::move(runDir).value();
    engine->m_setup.spec.outDir = engine->m_runDir.string();
    engine->m_setup.spec.saveDir.clear();
    engine->m_saveDir = engine->m_runDir;
    MR_TRY(refuseIfFull(engine->m_runDir, checkpointBytes(engine->m_setup)));
    MR_TRY(engine->refuseIfTooLarge());
    const RunSetup& setup = engine->m_setup;
    MR_TRY(checkDiskWrites(reportOf(setup).diskWriteBytesOfRun, setup.spec.maxDiskWriteBytes));
    engine->m_uuid = newUuid();
    MR_TRY(engine->openFirst(Source::Model));
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

Status Engine::prepareResume(const fs::path& runDir)
{
    std::error_code error;
    m_runDir = fs::absolute(runDir, error);
    auto spec = readRunSpec(m_runDir.string());
    if (!spec.ok())
        return spec.status();
    auto record = readRunRecord(m_runDir.string());
    if (!record.ok())
        return record.status();
    m_uuid = record.value().uuid;
    MR_TRY(findSaveDir(spec.value()));
    // A record that does not say is of a run without a template, or from before there was a choice.
    MR_TRY(prepareData(withStyle(spec.value(), RowStyle::Plain)));
    // The record does not say who chose it, and it changes no number.
    m_setup.asked.recompute = RecomputeChoice::Auto;
    MR_TRY(refuseIfTooLarge());
    MR_TRY(openFirst(Source::Checkpoint));
    m_resumedMs = m_progress.activeMs;
    m_evaluatedStep = m_progress.step;
    const auto sequences = static_cast<std::uint64_t>(m_trainSet.count());
    if (m_progress.sampler.count != sequences)
        return Status::error(ErrorKind::InvalidArgument,
            datasetPath(m_setup.spec) + ": gives " + std::to_string(sequences) +
                " sequences, the run began with " + std::to_string(m_progress.sampler.count) +
                "; put back the data it was started with");
    if (m_progress.dataHash != m_dataHash)
        return Status::error(ErrorKind::InvalidArgument,
            datasetPath(m_setup.spec) +
                ": is not the data the run began with (its tokens differ); put that back");
    MR_TRY(refuseIfDone());
    auto known = m_store.findRun(m_uuid);
    if (!known.ok())
        MR_TRY(registerRun()); // another history: the run is entered there from here on
    else
        m_runId = known.value();
    return m_replans.empty() ? Status() : recordPlan();
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
    if (!row.ok() || row.value().status != "done")
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        m_runDir.string() + ": this run has done all of its " + std::to_string(m_setup.spec.steps) +
            " steps; there is nothing to resume");
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
        (void)m_store.endRun(m_runId, "stopped", 0, why).ok(); // what was stopped stays so
}

Status Engine::findSaveDir(const RunSpec& spec)
{
    m_saveDir = spec.saveDir.empty() ? m_runDir : fs::path(spec.saveDir);
    std::error_code error;
    if (fs::is_directory(m_saveDir, error) || !m_hooks.saveFolder.empty())
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        m_runDir.string() + ": the newest checkpoints of this run are in " + m_saveDir.string() +
            ", which is not there; bring it back, or go on from older ones with --checkpoint-dir");
}

Status Engine::loadNewestCheckpoint()
{
    const auto found = checkpoints();
    if (found.empty())
        return Status::error(ErrorKind::InvalidArgument,
            m_runDir.string() + ": has no complete checkpoint to resume from; start it again");
    Status first;
    for (const fs::path& checkpoint : found) {
        auto progress = loadCheckpoint(checkpointContext(), checkpoint);
        if (progress.ok()) {
            m_progress = std::move(progress).value();
            m_savedStep = m_progress.step;
            m_fallback = first;
            m_otherIsa = m_progress.instructionSet != m_device.info().instructionSet;
            return {};
        }
        if (progress.status().kind() == ErrorKind::OutOfMemory)
            return progress.status(); // nothing is wrong with its files
        (void)m_store.setCheckpointState(checkpoint.string(), "broken").ok();
        if (first.ok())
            first = progress.status();
    }
    return first;
}

Status Engine::prepareData(const RunSpec& spec)
{
    auto early = setUpRun(spec, 0); // refuses a bad model or setting before the data is read
    if (!early.ok())
        return early.status();
    const RunSpec& sized = early.value().spec;
    auto tokenizer = Tokenizer::open(modelFolder(spec));
    if (!tokenizer.ok())
        return tokenizer.status();
    m_tokenizer = std::move(tokenizer).value();
    if (m_tokenizer->vocabulary() > early.value().config.vocab)
        return Status::error(ErrorKind::InvalidArgument,
            "the tokenizer has " + std::to_string(m_tokenizer->vocabulary()) +
                " tokens, the model only " + std::to_string(early.value().config.vocab) +
                " (vocab_size): they do not belong together");
    auto train = tokens(sized.data, *m_tokenizer, sized);
    if (!train.ok())
        return train.status();
    m_trainSet = std::move(train).value();
    if (!spec.evalData.empty()) {
        auto eval = tokens(sized.evalData, *m_tokenizer, sized);
        if (!eval.ok())
            return eval.status();
        m_evalSet = std::move(eval).value();
    } else if (const std::int64_t held = holdOutCount(m_trainSet.count(), spec.holdOut); held > 0) {
        auto parts = holdOut(m_trainSet, held);
        MR_TRY(parts.status());
        std::tie(m_trainSet, m_evalSet) = std::move(parts).value();
    }
    if (m_trainSet.count() == 0 || m_trainSet.trainedTokens == 0)
        return Status::error(ErrorKind::InvalidArgument,
            datasetPath(spec) + ": has no token to train on; look at it with `millrace inspect`");
    auto dataHash = hashOf(m_trainSet);
    MR_TRY(dataHash.status());
    m_dataHash = std::move(dataHash).value();
    auto setup = setUpRun(spec, m_trainSet.count());
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
    progress.sampler = {m_setup.spec.seed, 0, 0, static_cast<std::uint64_t>(m_trainSet.count())};
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
