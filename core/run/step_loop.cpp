#include "core/run/step_loop.h"

#include "core/base/clock.h"
#include "core/choose/trained_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr {
namespace {

constexpr int kBadStepsAllowed = 5; // in a row, then the run stops (decisions.md 10)
constexpr std::size_t kStallPieces = 4096;
constexpr double kNotEvaluated = std::numeric_limits<double>::quiet_NaN();

} // namespace

StepLoop::StepLoop(RunContext& run, RunJournal& journal, RunSaver& saver, OutcomeWatch& outcome)
    : m_run(run)
    , m_journal(journal)
    , m_saver(saver)
    , m_outcome(outcome)
{
}

void StepLoop::startBatches()
{
    const RunSpec& spec = m_run.setup.spec;
    m_batches = BatchStream::start(
        m_run.data.train, {spec.seqLen, spec.microBatch, spec.accumulate}, m_run.progress.sampler);
}

void StepLoop::closeBatches() noexcept
{
    if (m_batches)
        m_batches->close();
    m_batches.reset();
}

void StepLoop::noteOpened()
{
    m_evaluatedStep = m_run.step() - (std::isfinite(m_run.progress.evalLoss) ? 0 : 1);
}

void StepLoop::noteReopened()
{
    m_evaluatedStep = std::min(m_evaluatedStep, m_run.step());
}

Status StepLoop::trainNext()
{
    const StepIndex step = m_run.step() + 1;
    StepTimes times;
    times.beginNs = m_journal.endNs(); // rows leave no gap
    times.batchAskedNs = nowNs();
    MR_TRY(m_batches->next(m_batch));
    times.batchReadyNs = nowNs();
    if (m_batch.trainedTokens == 0) {
        skipStep(step, times.beginNs);
        return {};
    }
    MR_TRY(planStep(step));
    MR_ASSIGN(auto result, runPlan(step));
    times.endNs = result.endNs;
    times.tasks = result.tasks;
    recordStep(step, result, times);
    m_run.watch.addStep(m_run.body->plans().plan(), times.tasks,
        {m_run.setup.shape, m_run.setup.step.precision, m_run.setup.step.recompute});
    m_run.watch.timed(1e-9 * static_cast<double>(times.endNs - times.beginNs));
    m_run.progress.tokens += m_batch.tokens;
    finishStep(step);
    ++m_completed;
    m_outcome.watchLoss(step, m_run.progress.lastLoss);
    return judgeStep(result);
}

Status StepLoop::planStep(StepIndex step)
{
    m_run.setup.step.step = step;
    MR_ASSIGN(auto isNew, m_run.body->plans().planStep(m_run.setup.step));
    if (!isNew)
        return {};
    const StepPlan& plan = m_run.body->plans().plan();
    m_mostTasks = std::max(m_mostTasks, plan.tasks.size());
    m_ledger.emplace(m_mostTasks);
    m_stalls.reserve(kStallPieces);
    return m_run.body->executor().prepare(plan);
}

Result<StepResult> StepLoop::runPlan(StepIndex step)
{
    const RunSpec& spec = m_run.setup.spec;
    StepInputs inputs;
    inputs.micros = m_batch.micros;
    inputs.lossScale = static_cast<float>(1.0 / static_cast<double>(m_batch.trainedTokens));
    inputs.clipNorm = spec.clipNorm;
    inputs.lastNorm = m_run.progress.lastGradNorm;
    inputs.seed = spec.seed;
    const AdamwSettings adamw{spec.beta1, spec.beta2, spec.eps, spec.weightDecay};
    const double rate = learningRate(m_run.schedule, step - 1);
    const std::int64_t update = m_run.progress.updateCount + 1;
    inputs.update = update;
    inputs.factors = adamwFactors(adamw, rate, update);
    if (isAdapterRun(spec) && spec.loraPlus != 1.0)
        inputs.ofAdapterB = adamwFactors(adamw, spec.loraPlus * rate, update);
    m_run.body->plans().addFactors(inputs);
    return m_run.body->executor().run(m_run.body->plans().plan(), inputs);
}

void StepLoop::finishStep(StepIndex step)
{
    m_run.progress.step = step;
    m_run.progress.evalLoss = kNotEvaluated;
    m_run.progress.sampler = m_batch.after;
}

void StepLoop::skipStep(StepIndex step, std::int64_t beginNs)
{
    StepRow row;
    row.step = step;
    row.timeMs = m_run.activeMs();
    const std::int64_t endNs = nowNs();
    m_journal.closeStep(endNs);
    row.wallUs = (endNs - beginNs) / 1000;
    row.stallUs[static_cast<std::size_t>(StallCause::Data)] = row.wallUs;
    row.learningRate = learningRate(m_run.schedule, step - 1);
    m_journal.recorder().step(row);
    m_run.body->plans().skipStep(step);
    finishStep(step);
    m_journal.message(EventLevel::Warning, "no_trained_tokens",
        fmt::format("Step {} has no trained token and was skipped.", step));
}

void StepLoop::recordSpans(StepIndex step, const StepTimes& times)
{
    const StepPlan& plan = m_run.body->plans().plan();
    const RunSetup& setup = m_run.setup;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
        const Task& task = plan.tasks[i];
        TraceEvent event;
        event.kind = SpanKind::Task;
        event.task = task.kind;
        event.lane = task.lane;
        event.group = task.group.value;
        event.micro = task.micro.value;
        event.step = step;
        event.beginNs = times.tasks[i].beginNs;
        event.endNs = times.tasks[i].endNs;
        event.bytes = isDisk(task.lane) ? diskBytes(plan, task, setup.shape, setup.step.precision)
                                        : copyBytes(plan, task, setup.shape, setup.step.precision);
        m_journal.spans().record(event);
    }
}

void StepLoop::recordStep(StepIndex step, const StepResult& result, const StepTimes& times)
{
    const StepPlan& plan = m_run.body->plans().plan();
    m_stalls.clear();
    const StallSplit split = m_ledger->analyse(plan, times, &m_stalls);
    for (const TraceEvent& stall : m_stalls)
        m_journal.spans().record(stall);
    recordSpans(step, times);
    StepRow row = toStepRow(split);
    row.step = step;
    row.timeMs = m_run.activeMs();
    row.tokens = m_batch.tokens;
    row.lossTokens = m_batch.trainedTokens;
    row.loss = result.lossSum / static_cast<double>(m_batch.trainedTokens);
    row.learningRate = learningRate(m_run.schedule, step - 1);
    row.gradNorm = result.scalars.gradNorm;
    const MovedBytes moved = m_journal.closeStep(times.endNs);
    row.h2dBytes = moved.toDevice;
    row.d2hBytes = moved.toHost;
    row.diskReadBytes = moved.diskRead;
    row.diskWriteBytes = moved.diskWritten;
    const MemoryUsage usage = m_run.device.memoryUsage();
    row.devicePeakBytes = static_cast<std::int64_t>(usage.devicePeakBytes);
    row.hostPeakBytes = static_cast<std::int64_t>(usage.pinnedPeakBytes);
    row.staleness = plan.staleness;
    m_run.progress.lastLoss = row.loss;
    m_run.progress.lastGradNorm = row.gradNorm;
    m_run.progress.weightsHash.clear(); // was that of an older step
    m_journal.recorder().step(row);
}

Status StepLoop::judgeStep(const StepResult& result)
{
    RunProgress& progress = m_run.progress;
    if (result.scalars.finite != 0) {
        progress.badSteps = 0;
        ++progress.updateCount;
        return {};
    }
    ++progress.badSteps;
    const int groups = m_run.setup.shape.layers();
    const bool updatedSome = result.skippedGroups < groups;
    progress.updateCount += updatedSome ? 1 : 0;
    m_journal.message(EventLevel::Warning, "not_finite",
        fmt::format(
            "Step {}: the gradient has a NaN or infinity; the weights {}were left as they are.",
            m_run.step(),
            updatedSome ? fmt::format("of {} of {} groups ", result.skippedGroups, groups) : ""));
    if (isLight(m_run.setup.policy.optimizer) && updatedSome)
        return m_outcome.notFinite(
            fmt::format("the gradient of {} of {} groups was not finite in step "
                        "{}, and the others are updated already",
                result.skippedGroups, groups, m_run.step()));
    if (progress.badSteps < kBadStepsAllowed)
        return {};
    return m_outcome.notFinite(
        fmt::format("the gradient was not finite {} steps in a row", kBadStepsAllowed));
}

Status StepLoop::evaluateIfDue()
{
    const RunSpec& spec = m_run.setup.spec;
    const StepIndex step = m_run.step();
    if (m_evaluatedStep >= step)
        return {};
    const bool isAsked = m_run.data.eval.count() != 0 && spec.evalEvery != 0;
    if (isAsked && (step % spec.evalEvery == 0 || step == spec.steps))
        MR_TRY(evaluateNow());
    m_evaluatedStep = step;
    return {};
}

Status StepLoop::evaluateNow()
{
    const RunSpec& spec = m_run.setup.spec;
    MR_TRY(m_journal.finishLateParts());
    m_run.setup.step.step = m_run.step();
    MR_TRY(m_run.body->plans().planEvaluation(m_run.setup.step, m_evalPlan));
    MR_ASSIGN(auto result,
        evaluate(m_run.body->executor(), m_evalPlan, m_run.data.eval,
            {spec.seqLen, spec.microBatch, spec.accumulate},
            [this](const StepPlan& plan, const StepResult& run) { m_journal.noteRun(plan, run); }));
    const double loss = result.loss;
    m_journal.recorder().scalar("eval_loss", {m_run.step(), m_run.activeMs(), loss});
    m_run.progress.evalLoss = loss;
    m_outcome.noteEvaluation(m_run.step(), loss);
    if (m_saver.isSaved()) // before it was evaluated, because memory lacked then
        m_saver.forgetSaved();
    MR_TRY(scoreHeldOutAnswers());
    m_journal.book(IntervalKind::Evaluation);
    return {};
}

Status StepLoop::scoreHeldOutAnswers()
{
    const RunSetup& setup = m_run.setup;
    if (setup.spec.evalAnswers == 0 || !m_run.body->memory().hasCache())
        return {};
    MR_ASSIGN(auto score, scoreAnswers(m_run.body->executor(), m_run.data.eval, setup.config.vocab,
                              setup.micro.seqLen, setup.spec.evalAnswers));
    const AnswerScore& s = score;
    if (s.asked == 0)
        return {};
    m_journal.recorder().scalar(
        "eval_answers", {m_run.step(), m_run.activeMs(),
                            static_cast<double>(s.right) / static_cast<double>(s.asked)});
    m_journal.message(EventLevel::Info, "answers",
        fmt::format("Held-out questions answered right after step {}: {} of {}.", m_run.step(),
            s.right, s.asked));
    return {};
}

} // namespace mr
