// What a run says of its own losses: a jump while it trains, and whether it made the model worse.

#include "core/run/engine.h"

#include <millrace/run_reader.h>

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

void Engine::noteEvaluation(StepIndex step, double loss)
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

// Of a resumed run: its base and its best evaluation were measured in an earlier life. A history
// that does not have them leaves the run without a verdict.
void Engine::readEvaluations()
{
    auto reader = RunReader::open(m_store.path());
    if (!reader.ok())
        return;
    auto rows = reader.value()->scalars(m_runId, "eval_loss", -1);
    if (!rows.ok())
        return;
    for (const ScalarRow& row : rows.value())
        if (row.step <= m_progress.step)
            noteEvaluation(row.step, row.value);
}

void Engine::watchLoss(StepIndex step, double loss)
{
    const double usual = m_lossWatch.usual();
    if (!m_lossWatch.add(loss))
        return;
    std::string text = "Step " + std::to_string(step) + ": the loss jumped to " + lossText(loss);
    if (std::isfinite(usual))
        text += " (usual before: " + lossText(usual) + ")";
    m_recorder->message(EventLevel::Warning, "loss_spike", step, activeMs(),
        text + ". If it stays there, the learning rate is probably too high.");
}

Status Engine::notFinite(const std::string& what) const
{
    return Status::error(ErrorKind::Internal,
        what + "; try a smaller learning rate, more warm-up steps or precision fp32. " +
            (checkpoints().empty() ? "The run has no checkpoint yet: nothing of it was saved"
                                   : "The last checkpoint is safe"));
}

// After the last step, before it is saved: an older checkpoint must not make room for weights whose
// loss is no number.
Status Engine::checkLastLoss() const
{
    const Evaluations& e = m_evaluations;
    const bool isEvaluated = e.lastStep > 0 && e.lastStep == m_progress.step;
    if (std::isfinite(m_progress.lastLoss) && (!isEvaluated || std::isfinite(e.last)))
        return {};
    return notFinite("the loss of the last step, " + std::to_string(m_progress.step) +
                     ", is not a finite number: the run is not done and has no model");
}

void Engine::reportOutcome()
{
    const std::string text = describeOutcome(outcome());
    if (!text.empty())
        m_recorder->message(EventLevel::Warning, "worse", m_progress.step, activeMs(), text);
}

} // namespace mr
