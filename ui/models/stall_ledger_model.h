// Where the time of some steps went, as a table: compute, six causes of waiting, what the run did
// beside its steps, and the total.
//
// The shares are rounded together (largest remainder), so the column adds up to exactly 100.0 %.
//
// Units  Microseconds in, seconds with three decimals shown.

#pragma once

#include "math/stall_bars.h"

#include <QAbstractTableModel>
#include <QColor>

#include <vector>

namespace mr::ui {

class StallLedgerModel final : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { Part, Total, PerStep, Share, ColumnCount };
    // The number itself: microseconds (Total, PerStep), tenths of a percent (Share).
    enum Role { ValueRole = Qt::UserRole };

    explicit StallLedgerModel(QObject* parent = nullptr);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    void setTotals(const LedgerTotals& totals);
    void clear(); // nothing is known yet: dashes
    // What a click on a row does, for its tool tip; empty: nothing.
    void setClickHint(const QString& hint) { m_clickHint = hint; }
    const LedgerTotals& totals() const { return m_totals; }
    QByteArray csv() const;

private:
    static constexpr int kParts = 1 + static_cast<int>(kStallCauses);

    int totalRow() const { return kParts + static_cast<int>(m_kinds.size()); }
    IntervalKind kindOf(int row) const { return m_kinds[static_cast<std::size_t>(row - kParts)]; }
    QString explanation(int row) const;

    void showTotals(const LedgerTotals& totals);
    std::int64_t valueUs(int row) const;
    std::int64_t value(int row, int column) const;
    QVariant text(int row, int column) const;

    LedgerTotals m_totals;
    QString m_clickHint;
    std::vector<IntervalKind> m_kinds; // those that took time, after the parts of the steps
    bool m_known = true;
    std::vector<std::int64_t> m_tenths;
};

} // namespace mr::ui
