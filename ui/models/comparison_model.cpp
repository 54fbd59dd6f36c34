#include "models/comparison_model.h"

#include "models/comparison_words.h"
#include "text/format.h"
#include "text/units.h"

#include <QLocale>

#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr int kLossDigits = 4;

constexpr std::array<const char*, ComparisonModel::RowCount> kCsvNames = {"policy", "method",
    "max_stale_steps", "steps", "wall_s", "mean_step_ms", "tokens_per_second", "stalled_percent",
    "to_device_bytes_per_step", "to_host_bytes_per_step", "device_peak_bytes", "host_peak_bytes",
    "smoothed_loss", "best_eval"};

double known(std::int64_t count)
{
    return count > 0 ? static_cast<double>(count) : kNone;
}

double figure(int row, const RunFigures& run)
{
    switch (static_cast<ComparisonModel::Row>(row)) {
    case ComparisonModel::Steps:
        return known(run.ledger.steps);
    case ComparisonModel::WallTime:
        return run.ledger.steps > 0 ? run.activeSeconds : kNone;
    case ComparisonModel::MeanStep:
        return run.meanStepUs / 1e3;
    case ComparisonModel::Speed:
        return run.tokensPerSecond;
    case ComparisonModel::Stalled:
        return 100.0 * run.stallShare;
    case ComparisonModel::ToDevice:
        return run.toDeviceBytes;
    case ComparisonModel::ToHost:
        return run.toHostBytes;
    case ComparisonModel::PeakDevice:
        return known(run.devicePeakBytes);
    case ComparisonModel::PeakHost:
        return known(run.hostPeakBytes);
    case ComparisonModel::Loss:
        return run.lastLoss;
    case ComparisonModel::BestEval:
        return run.bestEval;
    default:
        return kNone;
    }
}

bool isDifference(int row)
{
    return row == ComparisonModel::Stalled || row == ComparisonModel::Loss ||
           row == ComparisonModel::BestEval;
}

// "adapter, rank 16" has a comma.
QByteArray csvCell(const QString& text)
{
    return text.isEmpty() ? QByteArray() : '"' + text.toUtf8().replace("\"", "\"\"") + '"';
}

QString signedText(double value, int digits)
{
    const QString sign = value < 0.0 ? QString(QChar(0x2212)) : QStringLiteral("+");
    return sign + numberText(std::abs(value), digits);
}

} // namespace

int ComparisonModel::rows() const
{
    return RowCount;
}

bool ComparisonModel::isNumber(int column) const
{
    return column != What;
}

void ComparisonModel::setRuns(const RunFigures& first, const RunFigures& second)
{
    m_runs = {first, second};
    emit dataChanged(index(0, 0), index(RowCount - 1, ColumnCount - 1));
    emit headerDataChanged(Qt::Horizontal, First, Second);
}

double ComparisonModel::value(int row, int column) const
{
    if (column == First || column == Second)
        return figure(row, m_runs.at(static_cast<std::size_t>(column - First)));
    if (column != Change || row == Steps)
        return kNone;
    // These grow or fall with every step: of 600 and of 140 steps they are no comparison.
    const bool ofWholeRun = row == WallTime || row == Loss || row == BestEval;
    if (ofWholeRun && m_runs[0].ledger.steps != m_runs[1].ledger.steps)
        return kNone;
    const double first = figure(row, m_runs[0]);
    const double second = figure(row, m_runs[1]);
    if (isDifference(row))
        return second - first;
    return first > 0.0 ? second / first : kNone;
}

QString ComparisonModel::rowTitle(int row) const
{
    switch (static_cast<Row>(row)) {
    case Policy:
        return tr("Policy");
    case Trained:
        return tr("Trains");
    case Updates:
        return tr("Updates");
    case Steps:
        return tr("Steps");
    case WallTime:
        return tr("Wall time");
    case MeanStep:
        return tr("Mean step");
    case Speed:
        return tr("Tokens/s");
    case Stalled:
        return tr("Stalled");
    case ToDevice:
        return tr("Upload per step");
    case ToHost:
        return tr("Download per step");
    case PeakDevice:
        return tr("Peak device memory");
    case PeakHost:
        return tr("Peak host memory");
    case Loss:
        return tr("Loss (smoothed)");
    case BestEval:
        return tr("Best evaluation");
    case RowCount:
        break;
    }
    return {};
}

QString ComparisonModel::rowTip(int row) const
{
    switch (static_cast<Row>(row)) {
    case Updates:
        return tr("Exact: the same numbers as without offload. Stale: the weights of a step lack "
                  "the newest updates, at most of so many steps.");
    case WallTime:
        return tr("The whole run: steps, evaluations and checkpoints, without pauses.");
    case Stalled:
        return tr("The share of the steps' time in which the device waited.");
    case ToDevice:
    case ToHost:
        return tr("Bytes over the link (PCIe) in a step, on average.");
    default:
        return {};
    }
}

QString ComparisonModel::runText(int row, const RunFigures& run, double value) const
{
    switch (static_cast<Row>(row)) {
    case Policy:
        return run.policy.isEmpty() ? QString(QChar(0x2013)) : run.policy;
    case Trained:
        return run.method.isEmpty() ? tr("everything") : run.method;
    case Updates:
        return ComparisonWords::exactness(run);
    case Steps:
        if (run.ledger.steps == 0)
            return QString(QChar(0x2013));
        return run.totalSteps > 0 ? tr("%1 / %2", "steps of all")
                                        .arg(countText(run.ledger.steps), countText(run.totalSteps))
                                  : countText(run.ledger.steps);
    case WallTime:
        return durationText(value);
    case MeanStep:
        return std::isfinite(value) ? Format::milliseconds(value) : QString(QChar(0x2013));
    case Speed:
        return numberText(value, 0);
    case Stalled:
        return percentText(value);
    case Loss:
    case BestEval:
        return numberText(value, kLossDigits);
    default:
        return memoryText(value);
    }
}

QString ComparisonModel::changeText(int row) const
{
    const double change = value(row, Change);
    if (!std::isfinite(change))
        return {};
    if (row == Stalled)
        return tr("%1 points", "difference of percentages").arg(signedText(change, 1));
    if (isDifference(row))
        return signedText(change, kLossDigits);
    return QStringLiteral("×") + numberText(change, 2);
}

QVariant ComparisonModel::cell(int row, int column, int role) const
{
    switch (role) {
    case Qt::DisplayRole:
        if (column == What)
            return rowTitle(row);
        if (column == Change)
            return changeText(row);
        return runText(
            row, m_runs.at(static_cast<std::size_t>(column - First)), value(row, column));
    case ValueRole: {
        const double number = value(row, column);
        return std::isfinite(number) ? QVariant(number) : QVariant();
    }
    case Qt::ToolTipRole:
        return rowTip(row);
    default:
        return {};
    }
}

QString ComparisonModel::title(int column) const
{
    const auto labels = ComparisonWords::labels(m_runs[0], m_runs[1]);
    switch (column) {
    case First:
        return labels[0];
    case Second:
        return labels[1];
    case Change:
        return tr("Second to first");
    default:
        return QString();
    }
}

QByteArray ComparisonModel::csv() const
{
    QByteArray text("figure,first,second\n");
    for (int row = 0; row < RowCount; ++row) {
        text += kCsvNames.at(static_cast<std::size_t>(row));
        for (const RunFigures& run : m_runs) {
            text += ',';
            const double number = figure(row, run);
            if (row == Policy)
                text += run.policy.toUtf8();
            else if (row == Trained)
                text += csvCell(run.method);
            else if (row == Updates && run.isPlanned)
                text += QByteArray::number(run.exact ? 0 : run.maxStaleSteps);
            else if (std::isfinite(number))
                text += QByteArray::number(number, 'g', 12);
        }
        text += '\n';
    }
    return text;
}

} // namespace mr::ui
