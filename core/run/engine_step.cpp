// One step of a run and what is looked at after it.

#include "core/base/clock.h"
#include "core/run/engine.h"

#include <algorithm>
#include <limits>

namespace mr {
namespace {

constexpr int kBadStepsAllowed = 5; // in a row, then the run stops (decisions.md 10)
constexpr std::size_t kStallPieces = 4096;
constexpr double kNotEvaluated = std::numeric_limits<double>::quiet_NaN();

} // namespace

Status Engine::planStep(StepIndex step)
{
    m_setup.step.step = step;
    auto isNew = m_body->plans().planStep(m_setup.step);
    MR_TRY(isNew.status());
    if (!isNew.value())
        return {};
    const StepPlan& plan = m_body->plans().plan();
    m_mostTasks = std::max(m_mostTasks, plan.tasks.size());
    m_ledger.emplace(m_mostTasks);
    m_stalls.reserve(kStallPieces);
    return m_body->executor().prepare(plan);
}

Status Engine::trainStep(StepIndex step)
{
    StepTimes times;
    times.beginNs = m_account.endNs(); // rows leave no gap
    times.batchAskedNs = nowNs();
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
    m_body->plans().addFactors(inputs);
    auto result = m_body->executor().run(m_body->plans().plan(), inputs);
    if (!result.ok())
        return result.status();
    times.endNs = result.value().endNs;
    times.tasks = result.value().tasks;
    recordStep(step, result.value(), times);
    m_watch.addStep(m_body->plans().plan(), times.tasks,
        {m_setup.shape, m_setup.step.precision, m_setup.step.recompute});
    m_watch.timed(1e-9 * static_cast<double>(times.endNs - times.beginNs));
    m_progress.step = step;
    m_progress.evalLoss = kNotEvaluated;
    m_progress.weightsHash.clear(); // was that of an older step
    m_progress.tokens += m_batch.tokens;
    m_progress.sampler = m_batch.after;
    m_recoveries = 0;
    watchLoss(step, m_progress.lastLoss);
    return judgeStep(step, result.value());
}

Status Engine::skipStep(StepIndex step, std::int64_t beginNs)
{
    StepRow row;
    row.step = step;
    row.timeMs = activeMs();
    const std::int64_t endNs = nowNs();
    m_account.closeStep(endNs, movedBytes());
    row.wallUs = (endNs - beginNs) / 1000;
    row.stallUs[static_cast<std::size_t>(StallCause::Data)] = row.wallUs;
    row.learningRate = learningRate(m_schedule, step - 1);
    m_recorder->step(row);
    m_body->plans().skipStep(step);
    m_progress.step = step;
    m_progress.evalLoss = kNotEvaluated;
    m_progress.sampler = m_batch.after;
    m_recorder->message(EventLevel::Warning, "no_trained_tokens", step, row.timeMs,
        "Step " + std::to_string(step) + " has no trained token and was skipped.");
    return {};
}

void Engine::recordStep(StepIndex step, const StepResult& result, const StepTimes& times)
{
    const StepPlan& plan = m_body->plans().plan();
    m_stalls.clear();
    const StallSplit split = m_ledger->analyse(plan, times, &m_stalls);
    for (const TraceEvent& stall : m_stalls)
        m_spans->record(stall);
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
        event.bytes = isDisk(task.lane)
                          ? diskBytes(plan, task, m_setup.shape, m_setup.step.precision)
                          : copyBytes(plan, task, m_setup.shape, m_setup.step.precision);
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
    const MovedBytes moved = m_account.closeStep(times.endNs, movedBytes());
    row.h2dBytes = moved.toDevice;
    row.d2hBytes = moved.toHost;
    row.diskReadBytes = moved.diskRead;
    row.diskWriteBytes = moved.diskWritten;
    const MemoryUsage usage = m_device.memoryUsage();
    row.devicePeakBytes = static_cast<std::int64_t>(usage.devicePeakBytes);
    row.hostPeakBytes = static_cast<std::int64_t>(usage.pinnedPeakBytes);
    row.staleness = plan.staleness;
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
    const int groups = m_setup.shape.layers();
    const bool updatedSome = result.skippedGroups < groups;
    m_progress.updateCount += updatedSome ? 1 : 0;
    m_recorder->message(EventLevel::Warning, "not_finite", step, activeMs(),
        "Step " + std::to_string(step) + ": the gradient has a NaN or infinity; the weights " +
            (updatedSome ? "of " + std::to_string(result.skippedGroups) + " of " +
                               std::to_string(groups) + " groups "
                         : "") +
            "were left as they are.");
    if (m_progress.badSteps < kBadStepsAllowed)
        return {};
    return notFinite(
        "the gradient was not finite " + std::to_string(kBadStepsAllowed) + " steps in a row");
}

Status Engine::evaluateIfDue(StepIndex step)
{
    const RunSpec& spec = m_setup.spec;
    if (m_data.eval.count() == 0 || spec.evalEvery == 0)
        return {};
    if (step % spec.evalEvery != 0 && step != spec.steps)
        return {};
    MR_TRY(finishLateParts());
    m_setup.step.step = step;
    MR_TRY(m_body->plans().planEvaluation(m_setup.step, m_evalPlan));
    auto result = evaluate(m_body->executor(), m_evalPlan, m_data.eval,
        {spec.seqLen, spec.microBatch, spec.accumulate},
        [this](const StepPlan& plan, const StepResult& run) { noteRun(plan, run); });
    if (!result.ok())
        return result.status();
    m_recorder->scalar("eval_loss", {step, activeMs(), result.value().loss});
    m_progress.evalLoss = result.value().loss;
    noteEvaluation(step, result.value().loss);
    if (m_savedStep == step) // before it was evaluated, because memory lacked then
        m_savedStep = -1;
    MR_TRY(answerQuestions(step));
    book(IntervalKind::Evaluation);
    return {};
}

Status Engine::answerQuestions(StepIndex step)
{
    if (m_setup.spec.evalAnswers == 0 || !m_body->memory().keyValueCache(0).data)
        return {};
    auto score = scoreAnswers(m_body->executor(), m_data.eval, m_setup.config.vocab,
        m_setup.micro.seqLen, m_setup.spec.evalAnswers);
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

} // namespace mr
