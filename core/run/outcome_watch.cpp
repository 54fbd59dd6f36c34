#include "core/run/outcome_watch.h"

#include <millrace/run_reader.h>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>

namespace mr {
namespace {

std::string lossText(double loss)
{
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%.4g", loss);
    return text.data();
}

} // namespace

OutcomeWatch::OutcomeWatch(RunContext& run, RunJournal& journal)
    : m_run(run)
    , m_journal(journal)
{
}

void OutcomeWatch::noteEvaluation(StepIndex step, double loss)
{
    Evaluations& e = m_evaluations;
    if (step == 0) {
        e.before = loss;
        m_lossWatch.setBase(loss);
        return;
    }
    e.last = loss;
    e.lastStep = step;
    if (std::isfinite(loss) && !(e.best <= loss)) {
        e.best = loss;
        e.bestStep = step;
    }
}

void OutcomeWatch::readEvaluations()
{
    auto reader = RunReader::open(m_run.store.path());
    if (!reader.ok())
        return;
    auto rows = reader.value()->scalars(m_run.id, "eval_loss", -1);
    if (!rows.ok())
        return;
    for (const ScalarRow& row : rows.value())
        if (row.step <= m_run.progress.step)
            noteEvaluation(row.step, row.value);
}

void OutcomeWatch::watchLoss(StepIndex step, double loss)
{
    const double usual = m_lossWatch.usual();
    if (!m_lossWatch.add(loss))
        return;
    std::string text = fmt::format("Step {}: the loss jumped to {}", step, lossText(loss));
    if (std::isfinite(usual))
        text += " (usual before: " + lossText(usual) + ")";
    m_journal.message(EventLevel::Warning, "loss_spike",
        text + ". If it stays there, the learning rate is probably too high.");
}

Status OutcomeWatch::notFinite(const std::string& subject) const
{
    return Status::error(ErrorKind::Internal,
        subject + "; try a smaller learning rate, more warm-up steps or precision fp32. " +
            (m_run.checkpoints().empty() ? "The run has no checkpoint yet: nothing of it was saved"
                                         : "The last checkpoint is safe"));
}

Status OutcomeWatch::checkLastLoss() const
{
    const Evaluations& e = m_evaluations;
    const bool isEvaluated = e.lastStep > 0 && e.lastStep == m_run.progress.step;
    if (std::isfinite(m_run.progress.lastLoss) && (!isEvaluated || std::isfinite(e.last)))
        return {};
    return notFinite(fmt::format("the loss of the last step, {}, is not a finite number: the run "
                                 "is not done and has no model",
        m_run.progress.step));
}

void OutcomeWatch::report()
{
    const std::string text = describeOutcome(outcome());
    if (!text.empty())
        m_journal.message(EventLevel::Warning, "worse", text);
}

} // namespace mr
