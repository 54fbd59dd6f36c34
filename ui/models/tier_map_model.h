// Where the bytes of each layer are: a row for each layer, one for the slots that layers share, and
// the total; a column for each kind of bytes. A cell knows its bytes by tier (kShareRole).
//
// The last row and the last column are sums, and the total is the sum of the plan's tiers.
//
// Units  Bytes.

#pragma once

#include "models/table_model.h"

#include <millrace/planner.h>

#include <QByteArray>
#include <QString>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mr::ui {

class TierMapModel final : public TableModel
{
    Q_OBJECT

public:
    enum Column { Layer, Weights, Gradients, Master, Moments, Other, Total, ColumnCount };
    enum Tier { Device, Host, Disk, TierCount };
    // ValueRole: the sum over tiers.

    explicit TierMapModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    // Null, or one without groups: no rows.
    void setPlan(const std::shared_ptr<const PlanReport>& plan);
    std::uint64_t bytes(int row, int column, Tier tier) const;
    std::uint64_t bytes(int row, int column) const;
    // The cell in words: "Layer 3, weights: 120 MiB on the device, 40 MiB on the host".
    QString sentence(const QModelIndex& index) const;
    QByteArray csv() const;

    static QString tierName(Tier tier);

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    QString titleTip(int column) const override;
    bool isNumber(int column) const override;

    using Cell = std::array<std::uint64_t, TierCount>;

    struct Row {
        std::string name; // group; empty: the total
        std::array<Cell, ColumnCount> cells{};
    };

    QString rowName(int row) const;
    QString toolTip(int row, int column) const;

    std::vector<Row> m_rows;
};

} // namespace mr::ui
