#include "models/outcome_words.h"

#include "text/units.h"

#include <QLocale>

#include <cmath>

namespace mr::ui {

namespace {

constexpr double kLarge = 1000.0;

QString lossText(double loss)
{
    if (!std::isfinite(loss))
        return OutcomeWords::tr("not a number");
    return loss < kLarge ? QLocale().toString(loss, 'g', 3)
                         : QLocale().toString(std::round(loss), 'f', 0);
}

RunOutcome outcomeOf(const RunRow& run)
{
    return run.status == RunStatus::Done ? judge(evaluationsOf(run)) : RunOutcome();
}

} // namespace

ShownStatus OutcomeWords::status(const RunRow& run)
{
    return {run.status, outcomeOf(run).verdict == RunVerdict::Worse};
}

QString OutcomeWords::sentence(const RunRow& run)
{
    const RunOutcome outcome = outcomeOf(run);
    if (outcome.verdict != RunVerdict::Worse)
        return {};
    const Evaluations& e = outcome.evaluations;
    const QString worse = tr("Worse than before training: %1 against %2 at step 0.")
                              .arg(lossText(e.last), lossText(e.before));
    const QString why = outcome.cause == WorseCause::LearningRate
                            ? tr("The learning rate is probably too high.")
                            : tr("It was best at step %1 (%2): train for fewer steps.")
                                  .arg(countText(e.bestStep), lossText(e.best));
    return tr("%1 %2", "what happened, why").arg(worse, why);
}

QString OutcomeWords::best(const RunRow& run)
{
    if (run.bestEvalStep < 0)
        return {QChar(0x2013)};
    return tr("%1 (step %2)").arg(numberText(run.bestEval, 4), countText(run.bestEvalStep));
}

QString OutcomeWords::before(const RunRow& run)
{
    if (!std::isfinite(run.firstEval))
        return {};
    return tr("Before training: %1").arg(numberText(run.firstEval, 4));
}

} // namespace mr::ui
