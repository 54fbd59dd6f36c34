#include "models/step_bars_model.h"

#include "math/share_bar.h"
#include "text/format.h"
#include "text/stall_words.h"
#include "text/units.h"

#include <QStringList>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr std::size_t kParts = 1 + kStallCauses;

double perStepMs(std::int64_t us, std::int64_t steps)
{
    return steps > 0 ? static_cast<double>(us) / 1e3 / static_cast<double>(steps) : 0.0;
}

} // namespace

int StepBarsModel::rows() const
{
    return kRuns;
}

bool StepBarsModel::isNumber(int column) const
{
    return column == Step;
}

void StepBarsModel::setRuns(const Run& first, const Run& second)
{
    m_runs = {first, second};
    emit dataChanged(index(0, 0), index(kRuns - 1, ColumnCount - 1));
}

double StepBarsModel::partMs(const Run& run, std::size_t part) const
{
    return perStepMs(run.ledger.us.at(part), run.ledger.steps);
}

double StepBarsModel::stepMs(const Run& run) const
{
    return perStepMs(run.ledger.wallUs, run.ledger.steps);
}

QString StepBarsModel::text(const Run& run, int column) const
{
    switch (static_cast<Column>(column)) {
    case Name:
        return run.name;
    case Updates:
        return run.updates;
    case Step:
        return run.ledger.steps > 0 ? Format::milliseconds(stepMs(run)) : QStringLiteral("–");
    default:
        return {};
    }
}

QVariant StepBarsModel::share(const Run& run) const
{
    if (run.ledger.steps == 0)
        return {};
    QVector<double> parts;
    for (std::size_t part = 0; part < kParts; ++part)
        parts.push_back(partMs(run, part));
    return QVariant::fromValue(ShareBar{parts, std::max(stepMs(m_runs[0]), stepMs(m_runs[1]))});
}

// The ledger's numbers, rounded together.
QString StepBarsModel::shares(const Run& run) const
{
    const std::vector<std::int64_t> tenths = shareOut(run.ledger.us, 1000);
    QStringList lines;
    for (std::size_t part = 0; part < kParts; ++part) {
        if (run.ledger.us.at(part) > 0)
            lines << QStringLiteral("%1: %2").arg(StallWords::name(part), tenthsText(tenths[part]));
    }
    return lines.join(QLatin1Char('\n'));
}

QVariant StepBarsModel::cell(int row, int column, int role) const
{
    const Run& run = m_runs.at(static_cast<std::size_t>(row));
    switch (role) {
    case Qt::DisplayRole:
        return text(run, column);
    case kShareRole:
        return column == Picture ? share(run) : QVariant();
    case Qt::AccessibleTextRole:
    case Qt::ToolTipRole:
        return column == Picture ? QVariant(shares(run)) : QVariant();
    default:
        return {};
    }
}

QString StepBarsModel::title(int column) const
{
    if (column == Updates)
        return tr("Updates");
    return column == Step ? tr("Mean step") : QString();
}

QByteArray StepBarsModel::csv() const
{
    QByteArray table("part,first_ms,second_ms\n");
    for (std::size_t part = 0; part <= kParts; ++part) {
        table += part == kParts ? QByteArray("step")
                 : part == 0
                     ? QByteArray("compute")
                     : QByteArray::fromStdString(std::string(kStallCauseNames.at(part - 1)));
        for (const Run& run : m_runs) {
            table += ',';
            if (run.ledger.steps > 0)
                table +=
                    QByteArray::number(part == kParts ? stepMs(run) : partMs(run, part), 'f', 3);
        }
        table += '\n';
    }
    return table;
}

} // namespace mr::ui
