#include "models/comparison_words.h"

#include "text/plan_words.h"
#include "text/units.h"

#include <QLocale>

#include <cmath>

namespace mr::ui {

namespace {

constexpr int kShownLossDigits = 3;
constexpr double kSame = 1.005; // a smaller ratio counts as equally fast
constexpr double kErrors = 2.0; // so many standard errors may be chance (95 percent)

// Two digits that mean something: 1.04, 1.8, 12.
QString ratioText(double ratio)
{
    return QLocale().toString(ratio, 'f', ratio < 1.1 ? 2 : ratio < 10.0 ? 1 : 0);
}

QString wholePercent(double share)
{
    const double percent = 100.0 * share;
    if (percent > 0.0 && percent < 1.0)
        return percentText(percent);
    return QLocale().toString(percent, 'f', 0) + QChar(0xa0) + QLatin1Char('%');
}

} // namespace

std::array<QString, 2> ComparisonWords::labels(const RunFigures& first, const RunFigures& second)
{
    if (!first.policy.isEmpty() && !second.policy.isEmpty() && first.policy != second.policy)
        return {first.policy, second.policy};
    const QString a = QString::fromStdString(first.name);
    const QString b = QString::fromStdString(second.name);
    if (a == b && second.runId != 0)
        return {QStringLiteral("%1 (%2)").arg(a).arg(first.runId),
            QStringLiteral("%1 (%2)").arg(b).arg(second.runId)};
    return {a, b};
}

QString ComparisonWords::exactness(const RunFigures& run)
{
    return run.isPlanned ? PlanWords::exactness(run.exact, run.maxStaleSteps, run.inexactBy)
                         : QString(QChar(0x2013));
}

QString ComparisonWords::speed(const RunFigures& first, const RunFigures& second)
{
    const auto [a, b] = labels(first, second);
    const double ratio = first.meanStepUs / second.meanStepUs;
    const double error = std::hypot(first.stepErrorUs, second.stepErrorUs);
    const bool isChance = std::abs(first.meanStepUs - second.meanStepUs) < kErrors * error;
    if (ratio >= kSame && !isChance)
        return tr("%1: %2 times faster per step than %3").arg(b, ratioText(ratio), a);
    if (ratio * kSame <= 1.0 && !isChance)
        return tr("%1: %2 times slower per step than %3").arg(b, ratioText(1.0 / ratio), a);
    return tr("%1: as fast per step as %2").arg(b, a);
}

QString ComparisonWords::lossPart(const CommonLoss& loss)
{
    const QString second = numberText(loss.second, kShownLossDigits);
    const QString first = numberText(loss.first, kShownLossDigits);
    const QString step = countText(loss.step);
    return loss.heldOut ? tr("held-out loss %1 against %2 at step %3").arg(second, first, step)
                        : tr("smoothed loss %1 against %2 at step %3").arg(second, first, step);
}

QString ComparisonWords::sentence(
    const RunFigures& first, const RunFigures& second, const CommonLoss& loss)
{
    if (!(first.meanStepUs > 0.0) || !(second.meanStepUs > 0.0))
        return {};
    const QString stalled =
        tr("stalled %1 instead of %2")
            .arg(wholePercent(second.stallShare), wholePercent(first.stallShare));
    const QString pace = speed(first, second);
    const QString all =
        loss.known ? tr("%1, %2; %3.", "speed, waiting, loss").arg(pace, stalled, lossPart(loss))
                   : tr("%1, %2.", "speed, waiting").arg(pace, stalled);
    return first.isEnded && second.isEnded ? all : tr("So far, %1").arg(all);
}

} // namespace mr::ui
