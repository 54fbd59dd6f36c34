#include "core/engine/engine.h"

#include "core/base/file.h"
#include "core/base/thread.h"
#include "core/engine/run_files.h"
#include "core/plan/plan_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr int kBadStepsAllowed = 5; // in a row, then the run stops (DECISIONS 10)
constexpr std::size_t kStallPieces = 4096;

// Plans of one kind differ in versions only.
std::size_t kindOf(const StepPlan& plan, const Carry& in)
{
    const GroupAnswers& answers = plan.answers.front();
    const bool closes = in.stepsIntoWindow + 1 >= answers.windowSteps;
    const bool selects = !plan.tasks.empty() && plan.tasks.back().kind == TaskKind::SelectColumns;
    constexpr int kPlaces = static_cast<int>(Engine::kPlanKinds / 32);
    auto kind = static_cast<std::size_t>(std::min(in.stepsIntoWindow, kPlaces - 1));
    for (const bool fact : {in.landed, in.hostJob.has_value(), closes, answers.besideNext, selects})
        kind = 2 * kind + (fact ? 1 : 0);
    return kind;
}

std::int64_t nowNs()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace

Engine::Engine(Device& device, RunStore& store, EngineHooks hooks)
    : m_device(device)
    , m_store(store)
    , m_hooks(std::move(hooks))
{
}

Engine::~Engine()
{
    requestStop();
    if (m_thread.joinable())
        m_thread.join();
}

Status Engine::start()
{
    RunState ready = RunState::Ready;
    if (!m_state.compare_exchange_strong(ready, RunState::Running))
        return Status::error(ErrorKind::InvalidArgument, "session: the run was started already");
    ThreadOptions options;
    options.name = "engine";
    m_thread = startThread(
        options,
        [this](const std::stop_token& stop) {
            run(stop);
            return Status();
        },
        [this](const Status& status) { closeRun(status); });
    return {};
}

void Engine::requestStop() noexcept
{
    m_stopRequested = true;
    RunState running = RunState::Running;
    m_state.compare_exchange_strong(running, RunState::Stopping);
}

Status Engine::failure() const
{
    const std::lock_guard lock(m_mutex);
    return m_failure;
}

Status Engine::wait()
{
    std::unique_lock lock(m_mutex);
    m_ended.wait(lock, [this] { return m_done; });
    return m_failure;
}

std::int64_t Engine::activeMs() const
{
    return m_resumedMs + (nowNs() - m_startNs) / 1'000'000;
}

CheckpointContext Engine::checkpointContext()
{
    const RunSpec& spec = m_setup.spec;
    return {m_setup.config, m_setup.table, *m_memory, *m_executor,
        spec.modelDir.empty() ? spec.scratchTokenizer : spec.modelDir};
}

void Engine::run(const std::stop_token& stop)
{
    m_startNs = nowNs();
    closeRun(guarded("engine", [&] { return train(stop); }));
}

Status Engine::train(const std::stop_token&)
{
    MR_TRY(startRecorder());
    const RunSpec& spec = m_setup.spec;
    m_batches = BatchStream::start(
        m_trainSet, {spec.seqLen, spec.microBatch, spec.accumulate}, m_progress.sampler);
    if (m_progress.step == 0)
        MR_TRY(evaluateIfDue(0));
    while (m_progress.step < spec.steps && !m_stopRequested) {
        const StepIndex step = m_progress.step + 1;
        MR_TRY(trainStep(step));
        MR_TRY(evaluateIfDue(step));
        if (spec.checkpointEvery > 0 && step % spec.checkpointEvery == 0 && step < spec.steps)
            MR_TRY(saveCheckpoint());
    }
    m_batches->close();
    if (m_savedStep != m_progress.step)
        MR_TRY(saveCheckpoint());
    if (m_progress.step < spec.steps)
        return {};
    return exportModel();
}

Status Engine::planStep(StepIndex step)
{
    m_setup.step.step = step;
    const Carry in = m_built.out;
    m_jobBefore = in.hostJob;
    MR_TRY(m_builder->buildPlanInto(m_setup.step, in, m_setup.rates, m_built));
    // The first two of a kind prove them all.
    std::uint8_t& seen = m_plansSeen[kindOf(m_built.plan, in)];
    if (seen >= 2)
        return {};
    ++seen;
    MR_TRY(checkPlan(m_built.plan, in, m_built.out, m_setup.shape, m_setup.budget, m_setup.policy));
    m_mostTasks = std::max(m_mostTasks, m_built.plan.tasks.size());
    m_ledger.emplace(m_mostTasks);
    m_stalls.reserve(kStallPieces);
    return m_executor->prepare(m_built.plan);
}

// Two counts of updates: the device's columns have one per step, the host's one per window.
void Engine::setWindowFactors(
    StepIndex step, const std::optional<HostJob>& job, StepInputs& inputs) const
{
    const WindowTasks* window = m_executor->window();
    if (!window)
        return;
    const RunSpec& spec = m_setup.spec;
    const AdamwSettings settings{spec.beta1, spec.beta2, spec.eps, spec.weightDecay};
    const auto factors = [&](StepIndex version, bool isOneStep, std::int64_t count) {
        const double factor = isOneStep ? 1.0 : m_setup.policy.hostLearningRate;
        return adamwFactors(settings, factor * learningRate(m_schedule, version - 1), count);
    };
    std::int64_t count = window->state.hostUpdates + 1;
    if (job)
        inputs.job = factors(job->version, m_memory->window->layout().steps == 1, count++);
    inputs.closing = factors(step, m_built.plan.window.before <= 0, count);
}

Status Engine::trainStep(StepIndex step)
{
    StepTimes times;
    times.beginNs = nowNs();
    MR_TRY(m_batches->next(m_batch));
    times.batchReadyNs = nowNs();
    if (m_batch.trainedTokens == 0)
        return skipStep(step, times.beginNs);
    MR_TRY(planStep(step));
    const RunSpec& spec = m_setup.spec;
    StepInputs inputs;
    inputs.micros = m_batch.micros;
    inputs.lossScale = static_cast<float>(1.0 / static_cast<double>(m_batch.trainedTokens));
    inputs.clipNorm = spec.clipNorm;
    inputs.factors = adamwFactors({spec.beta1, spec.beta2, spec.eps, spec.weightDecay},
        learningRate(m_schedule, step - 1), m_progress.updateCount + 1);
    inputs.before = std::exchange(m_factors, inputs.factors);
    setWindowFactors(step, m_jobBefore, inputs);
    auto result = m_executor->run(m_built.plan, inputs);
    if (!result.ok())
        return result.status();
    times.endNs = result.value().endNs;
    times.tasks = result.value().tasks;
    recordStep(step, result.value(), times);
    m_progress.step = step;
    m_progress.tokens += m_batch.tokens;
    m_progress.sampler = m_batch.after;
    return judgeStep(step, result.value());
}

Status Engine::skipStep(StepIndex step, std::int64_t beginNs)
{
    StepRow row;
    row.step = step;
    row.timeMs = activeMs();
    row.wallUs = (nowNs() - beginNs) / 1000;
    row.stallUs[static_cast<std::size_t>(StallCause::Data)] = row.wallUs;
    row.learningRate = learningRate(m_schedule, step - 1);
    m_recorder->step(row);
    m_built.out.step = step;
    if (auto& job = m_built.out.hostJob)
        ++job->dueStep;
    m_progress.step = step;
    m_progress.sampler = m_batch.after;
    m_recorder->message(EventLevel::Warning, "no_trained_tokens", step, row.timeMs,
        "Step " + std::to_string(step) + " has no trained token and was skipped.");
    return {};
}

void Engine::recordStep(StepIndex step, const StepResult& result, const StepTimes& times)
{
    m_stalls.clear();
    const StallSplit split = m_ledger->analyse(m_built.plan, times, &m_stalls);
    for (const TraceEvent& stall : m_stalls)
        m_spans->record(stall);
    for (std::size_t i = 0; i < m_built.plan.tasks.size(); ++i) {
        const Task& task = m_built.plan.tasks[i];
        TraceEvent event;
        event.kind = SpanKind::Task;
        event.task = task.kind;
        event.lane = task.lane;
        event.group = task.group.value;
        event.micro = task.micro.value;
        event.step = step;
        event.beginNs = times.tasks[i].beginNs;
        event.endNs = times.tasks[i].endNs;
        event.bytes = copyBytes(m_built.plan, task, m_setup.shape, m_setup.step.precision);
        m_spans->record(event);
    }
    StepRow row = toStepRow(split);
    row.step = step;
    row.timeMs = activeMs();
    row.tokens = m_batch.tokens;
    row.lossTokens = m_batch.trainedTokens;
    row.loss = result.lossSum / static_cast<double>(m_batch.trainedTokens);
    row.learningRate = learningRate(m_schedule, step - 1);
    row.gradNorm = result.scalars.gradNorm;
    row.h2dBytes = result.h2dBytes;
    row.d2hBytes = result.d2hBytes;
    const MemoryUsage usage = m_device.memoryUsage();
    row.devicePeakBytes = static_cast<std::int64_t>(usage.devicePeakBytes);
    row.hostPeakBytes = static_cast<std::int64_t>(usage.pinnedPeakBytes);
    row.staleness = m_built.plan.staleness;
    m_progress.lastLoss = row.loss;
    m_progress.lastGradNorm = row.gradNorm;
    m_recorder->step(row);
}

Status Engine::judgeStep(StepIndex step, const StepResult& result)
{
    if (result.scalars.finite != 0) {
        m_progress.badSteps = 0;
        ++m_progress.updateCount;
        return {};
    }
    ++m_progress.badSteps;
    m_recorder->message(EventLevel::Warning, "not_finite", step, activeMs(),
        "Step " + std::to_string(step) +
            ": the gradient has a NaN or infinity; the weights were left as they are.");
    if (m_progress.badSteps < kBadStepsAllowed)
        return {};
    return Status::error(ErrorKind::Internal,
        "the gradient was not finite " + std::to_string(kBadStepsAllowed) +
            " steps in a row; try a smaller learning rate, more warm-up steps or precision fp32. "
            "The last checkpoint is safe");
}

// Before anything looks at the weights. Exact: the next step would have made the same updates.
Status Engine::finishLateParts()
{
    if (m_built.out.pending.empty())
        return {};
    MR_TRY(m_builder->buildFlushInto(m_built.out, m_flush));
    MR_TRY(checkPlan(
        m_flush.plan, m_built.out, m_flush.out, m_setup.shape, m_setup.budget, m_setup.policy));
    StepInputs inputs;
    inputs.factors = m_factors;
    auto result = m_executor->run(m_flush.plan, inputs);
    MR_TRY(result.status());
    m_built.out = m_flush.out;
    return {};
}

Status Engine::evaluateIfDue(StepIndex step)
{
    const RunSpec& spec = m_setup.spec;
    if (m_evalSet.count() == 0 || spec.evalEvery == 0)
        return {};
    if (step % spec.evalEvery != 0 && step != spec.steps)
        return {};
    MR_TRY(finishLateParts());
    m_setup.step.step = step;
    MR_TRY(m_builder->buildEvaluationInto(m_setup.step, m_built.out, m_setup.rates, m_evalPlan));
    auto result = evaluate(
        *m_executor, m_evalPlan, m_evalSet, {spec.seqLen, spec.microBatch, spec.accumulate});
    if (!result.ok())
        return result.status();
    m_recorder->scalar("eval_loss", {step, activeMs(), result.value().loss});
    return answerQuestions(step);
}

Status Engine::answerQuestions(StepIndex step)
{
    if (m_setup.spec.evalAnswers == 0 || !m_memory->keyValueCache(0).data)
        return {};
    auto score = scoreAnswers(*m_executor, m_evalSet, m_setup.config.vocab, m_setup.micro.seqLen,
        m_setup.spec.evalAnswers);
    if (!score.ok())
        return score.status();
    const AnswerScore& s = score.value();
    if (s.asked == 0)
        return {};
    m_recorder->scalar("eval_answers",
        {step, activeMs(), static_cast<double>(s.right) / static_cast<double>(s.asked)});
    m_recorder->message(EventLevel::Info, "answers", step, activeMs(),
        "Held-out questions answered right after step " + std::to_string(step) + ": " +
            std::to_string(s.right) + " of " + std::to_string(s.asked) + ".");
    return {};
}

Status Engine::saveCheckpoint()
{
    const std::int64_t begin = nowNs();
    MR_TRY(finishLateParts());
    m_progress.activeMs = activeMs();
    m_progress.carry = m_built.out;
    // A killed run goes on from the checkpoint: the records up to it must be there too. A history
    // that fails was reported, and is no reason to lose the checkpoint.
    (void)m_recorder->flush().ok();
    auto written = writeCheckpoint(checkpointContext(), m_runDir, m_progress);
    if (!written.ok() && m_progress.step < m_setup.spec.steps && !m_stopRequested) {
        // The run goes on: what it has learned is still in memory, and the older checkpoints stay.
        m_recorder->message(EventLevel::Error, "checkpoint_failed", m_progress.step, activeMs(),
            "The checkpoint could not be written: " + written.status().message());
        return {};
    }
    if (!written.ok())
        return written.status();
    CheckpointRow row;
    row.step = m_progress.step;
    row.path = written.value().path.string();
    row.bytes = static_cast<std::int64_t>(written.value().bytes);
    row.state = "complete";
    row.createdMs = wallClockMs();
    row.writeMs = (nowNs() - begin) / 1'000'000;
    MR_TRY(m_store.addCheckpoint(m_runId, row, written.value().manifestHash));
    m_recorder->message(EventLevel::Info, "checkpoint", m_progress.step, activeMs(),
        "Checkpoint of step " + std::to_string(m_progress.step) + " written.");
    for (const fs::path& removed : pruneCheckpoints(m_runDir, m_setup.spec.keepCheckpoints))
        // A history that the run was moved to never knew its older checkpoints.
        (void)m_store.setCheckpointState(removed.string(), "deleted").ok();
    m_savedStep = m_progress.step;
    if (m_hooks.onCheckpoint) {
        m_hooks.onCheckpoint(written.value(), m_progress);
    }
    return {};
}

Status Engine::exportModel()
{
    MR_TRY(finishLateParts());
    StepInputs inputs;
    inputs.clipNorm = m_setup.spec.clipNorm;
    setWindowFactors(m_progress.step, m_built.out.hostJob, inputs);
    MR_TRY(m_executor->applyPending(m_built.out, inputs)); // the checkpoint has them as pending
    auto snapshot = MasterSnapshot::take(*m_executor, *m_memory);
    if (!snapshot.ok())
        return snapshot.status();
    const CheckpointContext context = checkpointContext();
    return saveModel(m_runDir / "model", m_setup.config, m_setup.table, snapshot.value().views(),
        m_memory->compute() == DType::F32 ? ExportType::F32 : ExportType::BF16, context.carryFrom);
}

void Engine::closeRun(const Status& status)
{
    if (m_batches)
        m_batches->close();
    if (!status.ok()) {
        m_latch.fail(status); // host updates that still wait are dropped
        m_device.submit();
    }
    const bool finished = status.ok() && m_progress.step >= m_setup.spec.steps;
    const char* word = !status.ok() ? "failed" : finished ? "done" : "stopped";
    m_sampler.reset(); // joined: nothing comes after the last message
    if (m_recorder) {
        m_recorder->message(status.ok() ? EventLevel::Info : EventLevel::Error, word,
            m_progress.step, activeMs(),
            status.ok() ? std::string("The run is ") + word + "." : status.message());
        (void)m_recorder->close().ok(); // a failed history was reported; the run folder has it all
    }
    const Status closed = m_store.endRun(m_runId, word, status.ok() ? 0 : 4, status.message());
    {
        const std::lock_guard lock(m_mutex);
        m_failure = status.ok() ? closed : status;
        // Before wait() can return: who waited asks for the state next.
        m_state = !m_failure.ok() ? RunState::Failed
                  : finished      ? RunState::Finished
                                  : RunState::Stopped;
        m_done = true;
    }
    m_ended.notify_all();
    if (m_hooks.listener)
        m_hooks.listener(m_runId);
}

} // namespace mr
