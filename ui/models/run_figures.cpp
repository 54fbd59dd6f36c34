#include "models/run_figures.h"

#include "math/series_math.h"
#include "models/run_progress.h"
#include "models/settings_model.h"
#include "text/method_words.h"
#include "text/units.h"

#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

// Settings in which two runs of a comparison differ by intent.
bool isOfPolicy(const QString& key)
{
    return key == QLatin1String("policy") || key.startsWith(QLatin1String("policy_options"));
}

QJsonObject objectOf(const std::string& json)
{
    return QJsonDocument::fromJson(QByteArray::fromStdString(json)).object();
}

// Smoothed over all steps up to and including `step`.
double smoothedLoss(const StepSeries& steps, std::int64_t step)
{
    Ema ema(kLossWindow);
    double value = kNone;
    for (std::size_t i = 0; i < steps.size() && steps[i].step <= step; ++i) {
        if (const double smoothed = ema.push(steps[i].loss); std::isfinite(smoothed))
            value = smoothed;
    }
    return value;
}

double stepErrorUs(const StepSeries& steps)
{
    const auto count = static_cast<double>(steps.size());
    if (steps.size() < 2)
        return 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i)
        sum += static_cast<double>(steps[i].wallUs);
    double squares = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i)
        squares += std::pow(static_cast<double>(steps[i].wallUs) - sum / count, 2);
    return std::sqrt(squares / (count - 1.0) / count);
}

// Bytes of a step: all that the run moved, over its steps.
void addSums(const RunSnapshot& run, RunFigures& figures)
{
    const StepSeries& steps = run.steps;
    std::int64_t tokens = 0;
    double toDevice = 0.0;
    double toHost = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const StepRow& row = steps[i];
        tokens += row.tokens;
        toDevice += static_cast<double>(row.h2dBytes);
        toHost += static_cast<double>(row.d2hBytes);
        figures.devicePeakBytes = std::max(figures.devicePeakBytes, row.devicePeakBytes);
        figures.hostPeakBytes = std::max(figures.hostPeakBytes, row.hostPeakBytes);
    }
    for (const IntervalRow& row : run.intervals) {
        toDevice += static_cast<double>(row.h2dBytes);
        toHost += static_cast<double>(row.d2hBytes);
    }
    const auto count = static_cast<double>(steps.size());
    const auto wall = static_cast<double>(figures.ledger.wallUs);
    figures.meanStepUs = count > 0.0 ? wall / count : kNone;
    figures.stepErrorUs = stepErrorUs(steps);
    figures.toDeviceBytes = count > 0.0 ? toDevice / count : kNone;
    figures.toHostBytes = count > 0.0 ? toHost / count : kNone;
    figures.tokensPerSecond = wall > 0.0 ? static_cast<double>(tokens) / wall * 1e6 : kNone;
    figures.stallShare =
        wall > 0.0 ? 1.0 - static_cast<double>(figures.ledger.us[0]) / wall : kNone;
}

} // namespace

QString policyOf(const RunRow& run)
{
    for (const std::string* json : {&run.planJson, &run.configJson}) {
        QString policy = objectOf(*json).value(QLatin1String("policy")).toString();
        if (!policy.isEmpty())
            return policy;
    }
    return {};
}

QString methodOf(const RunRow& run)
{
    const QJsonObject config = objectOf(run.configJson);
    const QString method = config.value(QLatin1String("method")).toString();
    const QString layers = config.value(QLatin1String("train_layers")).toString();
    const bool isNf4 = method == QLatin1String("qlora");
    if (isNf4 || method == QLatin1String("lora"))
        return MethodWords::adapter(config.value(QLatin1String("rank")).toInteger(), isNf4);
    if (!method.isEmpty() && method != QLatin1String("full"))
        return method; // another program's
    if (config.value(QLatin1String("train")).toString() == QLatin1String("blocks"))
        return MethodWords::blocks();
    return layers.isEmpty() ? QString() : MethodWords::layers(layers);
}

RunFigures figuresOf(const RunSnapshot& run)
{
    RunFigures figures{};
    figures.runId = run.run.id;
    figures.name = run.run.name;
    figures.isEnded = isEnded(run.run);
    figures.policy = run.plan ? QString::fromStdString(run.plan->policy) : policyOf(run.run);
    figures.method = methodOf(run.run);
    figures.isPlanned = run.plan != nullptr;
    figures.exact = run.plan == nullptr || run.plan->exact;
    figures.maxStaleSteps = run.plan ? run.plan->maxStaleSteps : 0;
    figures.inexactBy = run.plan ? run.plan->inexactBy : std::string();
    figures.ledger =
        ledgerTotals(run.steps, 0.0, static_cast<double>(std::numeric_limits<int>::max()));
    figures.totalSteps = run.run.totalSteps;
    figures.activeSeconds = static_cast<double>(run.run.activeUs) / 1e6;
    figures.devicePeakBytes = run.run.devicePeakBytes;
    figures.hostPeakBytes = run.run.hostPeakBytes;
    figures.bestEval = run.run.bestEval;
    figures.lastLoss = run.steps.empty() ? kNone : smoothedLoss(run.steps, run.steps.back().step);
    addSums(run, figures);
    return figures;
}

CommonLoss commonLoss(const RunSnapshot& first, const RunSnapshot& second)
{
    CommonLoss loss;
    for (auto a = first.evalLoss.rbegin(); a != first.evalLoss.rend(); ++a) {
        const auto b = std::find_if(second.evalLoss.begin(), second.evalLoss.end(),
            [&a](const ScalarRow& row) { return row.step == a->step; });
        // Before the first step both are the model that was given: that says nothing.
        if (b != second.evalLoss.end() && a->step > 0)
            return {true, true, a->step, a->value, b->value};
    }
    if (first.steps.empty() || second.steps.empty())
        return loss;
    loss.step = std::min(first.steps.back().step, second.steps.back().step);
    loss.first = smoothedLoss(first.steps, loss.step);
    loss.second = smoothedLoss(second.steps, loss.step);
    loss.known = std::isfinite(loss.first) && std::isfinite(loss.second);
    return loss;
}

QStringList otherDifferences(const RunRow& first, const RunRow& second)
{
    QStringList differences;
    for (const SettingRow& row : settingRows(first, second)) {
        if (row.differs && row.isInBoth() && !isOfPolicy(row.key))
            differences << QStringLiteral("%1: %2, %3").arg(row.key, row.text(0), row.text(1));
    }
    return differences;
}

} // namespace mr::ui
