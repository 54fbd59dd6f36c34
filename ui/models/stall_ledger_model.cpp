#include "models/stall_ledger_model.h"

#include "text/cause_colors.h"
#include "text/format.h"
#include "text/stall_words.h"
#include "text/units.h"

#include <QFont>
#include <QGuiApplication>
#include <QLocale>

#include <utility>

namespace mr::ui {

StallLedgerModel::StallLedgerModel(QObject* parent)
    : TableModel(ColumnCount, parent)
    , m_tenths(kParts, 0)
{
}

int StallLedgerModel::rows() const
{
    return totalRow() + 1;
}

bool StallLedgerModel::isNumber(int column) const
{
    return column != Part;
}

std::int64_t StallLedgerModel::valueUs(int row) const
{
    if (row < kParts)
        return m_totals.us[static_cast<std::size_t>(row)];
    if (row < totalRow())
        return m_totals.intervalUs[static_cast<std::size_t>(kindOf(row))];
    return m_totals.wallUs;
}

std::int64_t StallLedgerModel::value(int row, int column) const
{
    if (column == Total)
        return valueUs(row);
    if (column == PerStep)
        return m_totals.steps > 0 ? valueUs(row) / m_totals.steps : 0;
    if (row < totalRow())
        return m_tenths[static_cast<std::size_t>(row)];
    return m_totals.wallUs > 0 ? 1000 : 0;
}

QVariant StallLedgerModel::text(int row, int column) const
{
    if (column == PerStep && row >= kParts && row < totalRow())
        return {}; // beside the steps
    if (column != Part && !m_known)
        return QStringLiteral("–"); // nothing was measured, which is not zero
    switch (static_cast<Column>(column)) {
    case Part:
        return row < kParts       ? StallWords::name(static_cast<std::size_t>(row))
               : row < totalRow() ? StallWords::name(kindOf(row))
                                  : tr("Total");
    case Total:
        return tr("%1 s").arg(QLocale().toString(static_cast<double>(valueUs(row)) / 1e6, 'f', 3));
    case PerStep:
        return Format::milliseconds(static_cast<double>(value(row, PerStep)) / 1000.0);
    case Share:
        return tenthsText(value(row, Share));
    case ColumnCount:
        break;
    }
    return {};
}

QVariant StallLedgerModel::cell(int row, int column, int role) const
{
    switch (role) {
    case Qt::DisplayRole:
        return text(row, column);
    case ValueRole:
        return column == Part ? QVariant() : QVariant(static_cast<qlonglong>(value(row, column)));
    case Qt::DecorationRole:
        if (column == Part && row < kParts)
            return partColor(QGuiApplication::palette(), static_cast<std::size_t>(row));
        return {};
    case Qt::ToolTipRole:
        return QStringList{rowTip(row), row < kParts ? m_clickHint : QString()}
            .join(QLatin1Char('\n'))
            .trimmed();
    case Qt::FontRole:
        if (row == totalRow()) {
            QFont font;
            font.setBold(true);
            return font;
        }
        return {};
    default:
        return {};
    }
}

QString StallLedgerModel::rowTip(int row) const
{
    if (row < kParts)
        return StallWords::explanation(static_cast<std::size_t>(row));
    if (row < totalRow())
        return StallWords::explanation(kindOf(row));
    return m_kinds.empty() ? tr("The time of these steps from start to end.")
                           : tr("The time of the run, of its steps and of all beside them.");
}

QString StallLedgerModel::title(int column) const
{
    switch (column) {
    case Part:
        return tr("Went to");
    case Total:
        return tr("Time");
    case PerStep:
        return tr("Per step");
    case Share:
        return tr("Share");
    default:
        return {};
    }
}

void StallLedgerModel::setTotals(const LedgerTotals& totals)
{
    m_known = true;
    showTotals(totals);
}

void StallLedgerModel::clear()
{
    m_known = false;
    showTotals({});
}

void StallLedgerModel::showTotals(const LedgerTotals& totals)
{
    std::vector<IntervalKind> kinds;
    for (std::size_t i = 0; i < kIntervalKinds; ++i)
        if (totals.intervalUs[i] > 0)
            kinds.push_back(static_cast<IntervalKind>(i));
    const bool isOtherRows = kinds != m_kinds;
    if (isOtherRows)
        beginResetModel();
    m_kinds = std::move(kinds);
    m_totals = totals;
    std::vector<std::int64_t> us(totals.us.begin(), totals.us.end());
    for (const IntervalKind kind : m_kinds)
        us.push_back(totals.intervalUs[static_cast<std::size_t>(kind)]);
    m_tenths = shareOut(us, 1000);
    if (isOtherRows)
        endResetModel();
    else
        emit dataChanged(index(0, Total), index(totalRow(), Share), {Qt::DisplayRole, ValueRole});
}

QByteArray StallLedgerModel::csv() const
{
    QByteArray text("part,total_us,share_percent\n");
    const auto bytes = [](std::string_view name) {
        return QByteArray(name.data(), static_cast<qsizetype>(name.size()));
    };
    for (int row = 0; row <= totalRow(); ++row) {
        QByteArray name = "total";
        if (row == 0)
            name = "compute";
        else if (row < kParts)
            name = bytes(kStallCauseNames[static_cast<std::size_t>(row - 1)]);
        else if (row < totalRow())
            name = bytes(kIntervalKindNames[static_cast<std::size_t>(kindOf(row))]);
        text += name + ',' + QByteArray::number(static_cast<qlonglong>(valueUs(row))) + ',' +
                QByteArray::number(static_cast<double>(value(row, Share)) / 10.0, 'f', 1) + '\n';
    }
    return text;
}

} // namespace mr::ui
