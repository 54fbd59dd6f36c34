// Where the time of some steps went, as a table: compute, six causes of waiting, the run's work
// beside its steps, and the total.
//
// The shares are rounded together (largest remainder), so the column adds up to exactly 100.0 %.
//
// Units  Microseconds in, seconds with three decimals shown.

#pragma once

#include "math/stall_bars.h"
#include "models/table_model.h"

#include <QColor>

#include <vector>

namespace mr::ui {

class StallLedgerModel final : public TableModel
{
    Q_OBJECT

public:
    enum Column { Part, Total, PerStep, Share, ColumnCount };
    // ValueRole: the number itself: microseconds (Total, PerStep), tenths of a percent (Share).

    explicit StallLedgerModel(QObject* parent = nullptr);

    void setTotals(const LedgerTotals& totals);
    void clear(); // nothing is known yet: dashes
    // Tool tip about a click on a row; empty: a click does nothing.
    void setClickHint(const QString& hint) { m_clickHint = hint; }
    const LedgerTotals& totals() const { return m_totals; }
    QByteArray csv() const;

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    static constexpr int kParts = 1 + static_cast<int>(kStallCauses);

    int totalRow() const { return kParts + static_cast<int>(m_kinds.size()); }
    IntervalKind kindOf(int row) const { return m_kinds[static_cast<std::size_t>(row - kParts)]; }
    QString rowTip(int row) const;

    void showTotals(const LedgerTotals& totals);
    std::int64_t valueUs(int row) const;
    std::int64_t value(int row, int column) const;
    QVariant text(int row, int column) const;

    LedgerTotals m_totals;
    QString m_clickHint;
    std::vector<IntervalKind> m_kinds; // kinds that took time; rows after the parts of the steps
    bool m_known = true;
    std::vector<std::int64_t> m_tenths;
};

} // namespace mr::ui
