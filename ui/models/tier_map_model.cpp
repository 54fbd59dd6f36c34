#include "models/tier_map_model.h"

#include "math/share_bar.h"
#include "text/format.h"
#include "text/timeline_words.h"
#include "text/units.h"

#include <QFont>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace mr::ui {

namespace {

constexpr std::array<std::string_view, TierMapModel::TierCount> kTierNames = {
    "device", "host", "disk"};
constexpr std::array<std::string_view, TierMapModel::ColumnCount> kColumnNames = {
    "layer", "weights", "gradients", "master", "moments", "other", "total"};

struct KindColumn {
    std::string_view kind;
    TierMapModel::Column column;
};

constexpr std::array kKinds = {
    KindColumn{"weights", TierMapModel::Weights},
    KindColumn{"weight slots", TierMapModel::Weights},
    KindColumn{"gradients", TierMapModel::Gradients},
    KindColumn{"accumulators", TierMapModel::Gradients},
    KindColumn{"second accumulator", TierMapModel::Gradients},
    KindColumn{"high plane", TierMapModel::Master},
    KindColumn{"low plane", TierMapModel::Master},
    KindColumn{"first moments", TierMapModel::Moments},
    KindColumn{"second moments", TierMapModel::Moments},
    KindColumn{"averages of squares", TierMapModel::Moments},
    KindColumn{"optimizer state", TierMapModel::Moments},
    KindColumn{"state slots", TierMapModel::Moments},
    KindColumn{"disk slots", TierMapModel::Moments},
    KindColumn{"state on disk", TierMapModel::Moments},
    KindColumn{"weights on disk", TierMapModel::Weights},
    KindColumn{"gradients on disk", TierMapModel::Gradients},
    KindColumn{"urgent state", TierMapModel::Moments},
    KindColumn{"urgent gradients", TierMapModel::Gradients},
    KindColumn{"urgent sums", TierMapModel::Gradients},
    KindColumn{"packed gradients", TierMapModel::Gradients},
    KindColumn{"window sums", TierMapModel::Gradients},
};

TierMapModel::Column columnOf(const std::string& kind)
{
    const auto found = std::find_if(
        kKinds.begin(), kKinds.end(), [&kind](const KindColumn& k) { return k.kind == kind; });
    return found == kKinds.end() ? TierMapModel::Other : found->column;
}

// Weights that stream have no bytes of their own: they come from the high half of the master.
bool streams(const PlanGroup& group)
{
    return std::none_of(group.bytes.begin(), group.bytes.end(),
        [](const PlanGroupBytes& part) { return part.kind == "weights"; });
}

} // namespace

int TierMapModel::rows() const
{
    return static_cast<int>(m_rows.size());
}

bool TierMapModel::isNumber(int column) const
{
    return column != Layer;
}

void TierMapModel::setPlan(const std::shared_ptr<const PlanReport>& plan)
{
    beginResetModel();
    m_rows.clear();
    Row sum;
    const std::vector<PlanGroup> none;
    for (const PlanGroup& group : plan ? plan->groups : none) {
        Row row;
        row.name = group.name;
        const Column highHalf = streams(group) ? Weights : Master;
        for (const PlanGroupBytes& part : group.bytes) {
            const auto found = std::find(kTierNames.begin(), kTierNames.end(), part.tier);
            if (found == kTierNames.end())
                continue;
            const auto tier = static_cast<std::size_t>(found - kTierNames.begin());
            const Column own = part.kind == "high plane" ? highHalf : columnOf(part.kind);
            for (const Column column : {own, Total}) {
                row.cells[column].at(tier) += part.bytes;
                sum.cells[column].at(tier) += part.bytes;
            }
        }
        m_rows.push_back(std::move(row));
    }
    if (!m_rows.empty())
        m_rows.push_back(std::move(sum));
    endResetModel();
}

std::uint64_t TierMapModel::bytes(int row, int column, Tier tier) const
{
    return m_rows[static_cast<std::size_t>(row)].cells.at(static_cast<std::size_t>(column))[tier];
}

std::uint64_t TierMapModel::bytes(int row, int column) const
{
    const Cell& cell =
        m_rows[static_cast<std::size_t>(row)].cells.at(static_cast<std::size_t>(column));
    return std::accumulate(cell.begin(), cell.end(), std::uint64_t{0});
}

QString TierMapModel::tierName(Tier tier)
{
    switch (tier) {
    case Device:
        return tr("Device");
    case Host:
        return tr("Host");
    default:
        return tr("Disk");
    }
}

QString TierMapModel::rowName(int row) const
{
    const std::string& name = m_rows[static_cast<std::size_t>(row)].name;
    return name.empty() ? tr("Total") : TimelineWords::layer(name);
}

QString TierMapModel::sentence(const QModelIndex& index) const
{
    const int row = index.row();
    const int column = index.column();
    QString where = rowName(row);
    if (column == Layer)
        return where;
    QStringList parts;
    for (const Tier tier : {Device, Host, Disk}) {
        if (const std::uint64_t count = bytes(row, column, tier); count > 0)
            parts << QStringLiteral("%1 %2").arg(
                tierName(tier), memoryText(static_cast<double>(count)));
    }
    const QString kind = title(column);
    return tr("%1 · %2: %3", "layer, kind of bytes, bytes by tier")
        .arg(where, kind, parts.isEmpty() ? tr("nothing") : parts.join(QStringLiteral(" · ")));
}

QString TierMapModel::toolTip(int row, int column) const
{
    const std::uint64_t all = bytes(row, column);
    QString html = QStringLiteral("<b>%1</b><table cellspacing=0>")
                       .arg(tr("%1: %2").arg(rowName(row), title(column)).toHtmlEscaped());
    for (const Tier tier : {Device, Host, Disk}) {
        const std::uint64_t count = bytes(row, column, tier);
        if (count == 0)
            continue;
        const double share = 100.0 * static_cast<double>(count) / static_cast<double>(all);
        html +=
            QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align=right>%2&nbsp;&nbsp;</td>"
                           "<td align=right>%3</td></tr>")
                .arg(tierName(tier).toHtmlEscaped(), Format::exactBytes(count), percentText(share));
    }
    return html + QStringLiteral("</table>");
}

QVariant TierMapModel::cell(int row, int column, int role) const
{
    const bool isTotal = m_rows[static_cast<std::size_t>(row)].name.empty();
    const bool isCell = column != Layer;
    const std::uint64_t count = isCell ? bytes(row, column) : 0;
    switch (role) {
    case Qt::DisplayRole:
        if (!isCell)
            return rowName(row);
        return count > 0 ? memoryText(static_cast<double>(count)) : QStringLiteral("–");
    case ValueRole:
        return isCell ? QVariant(static_cast<qulonglong>(count)) : QVariant();
    case kShareRole:
        if (count == 0)
            return {};
        return QVariant::fromValue(ShareBar{{static_cast<double>(bytes(row, column, Device)),
                                                static_cast<double>(bytes(row, column, Host)),
                                                static_cast<double>(bytes(row, column, Disk))},
            0.0});
    case Qt::ToolTipRole:
        return count > 0 ? QVariant(toolTip(row, column)) : QVariant();
    case Qt::AccessibleTextRole:
        return sentence(index(row, column));
    case Qt::FontRole:
        if (isTotal) {
            QFont font;
            font.setBold(true);
            return font;
        }
        return {};
    default:
        return {};
    }
}

QString TierMapModel::title(int column) const
{
    switch (column) {
    case Layer:
        return tr("Layer");
    case Weights:
        return tr("Weights");
    case Gradients:
        return tr("Gradients");
    case Master:
        return tr("Master");
    case Moments:
        return tr("Moments");
    case Other:
        return tr("Other");
    default:
        return tr("Total");
    }
}

QString TierMapModel::titleTip(int column) const
{
    switch (column) {
    case Weights:
        return tr("The weights that the device computes with.");
    case Gradients:
        return tr("Sums over micro-batches, and finished gradients.");
    case Master:
        return tr("The exact copy of the weights that the optimizer updates, as far as the weights "
                  "themselves are not part of it.");
    case Moments:
        return tr("The two moments of AdamW.");
    case Other:
        return tr("Activations, batches, workspace and slots for copies: of no layer.");
    default:
        return {};
    }
}

QByteArray TierMapModel::csv() const
{
    QByteArray text("layer,kind,tier,bytes\n");
    for (int row = 0; row < rowCount(); ++row) {
        const std::string& name = m_rows[static_cast<std::size_t>(row)].name;
        for (int column = Weights; column < ColumnCount; ++column) {
            for (const Tier tier : {Device, Host, Disk}) {
                if (bytes(row, column, tier) == 0)
                    continue;
                text += QByteArray::fromStdString(
                    (name.empty() ? "total" : name) + ',' +
                    std::string(kColumnNames[static_cast<std::size_t>(column)]) + ',' +
                    std::string(kTierNames[tier]) + ',' + std::to_string(bytes(row, column, tier)) +
                    '\n');
            }
        }
    }
    return text;
}

} // namespace mr::ui
