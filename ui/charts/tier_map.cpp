#include "charts/tier_map.h"

#include "charts/legend.h"
#include "charts/share_bar_delegate.h"
#include "models/tier_map_model.h"
#include "text/theme_colors.h"
#include "text/units.h"
#include "widgets/card.h"

#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>
#include <array>

namespace mr::ui {

namespace {

constexpr int kMostRows = 14; // seen at once; the rest scrolls
constexpr int kBarRoom = 13;  // height of a row beyond its text
constexpr std::array<const char*, TierMapModel::TierCount> kTierKeys = {"device", "host", "disk"};

// Fastest memory in the colour of computing.
QColor tierColor(const QPalette& palette, int tier)
{
    constexpr std::array<std::size_t, TierMapModel::TierCount> kSeries = {0, 1, 3};
    return themeColors(palette).series.at(kSeries.at(static_cast<std::size_t>(tier)));
}

} // namespace

TierMap::TierMap(QWidget* parent)
    : TierMap(new QTableView, new QWidget, parent)
{
}

TierMap::TierMap(QTableView* table, QWidget* content, QWidget* parent)
    : ChartPanel(tr("Where the bytes are"), content, parent)
    , m_table(table)
    , m_sentence(makeMutedLabel())
    , m_model(new TierMapModel(this))
{
    auto* layout = new QVBoxLayout(content);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_sentence);
    layout->addWidget(m_table);
    layout->addStretch(1);
    setUpTable();
    ChartExport map;
    map.baseName = QStringLiteral("tier-map");
    map.csv = [this] { return m_model->csv(); };
    setExport(std::move(map));
    setPlan(nullptr);
}

void TierMap::setUpTable()
{
    m_table->setModel(m_model);
    m_table->setItemDelegate(
        new ShareBarDelegate(ShareBarDelegate::Style::BarUnderText, tierColor, m_table));
    m_table->setAccessibleName(tr("Bytes by layer, kind and tier"));
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->viewport()->setAutoFillBackground(false); // the card shows through
    m_table->setShowGrid(false);
    m_table->setWordWrap(false);
    m_table->setSelectionMode(QAbstractItemView::NoSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setTabKeyNavigation(false);
    m_table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + kBarRoom);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setMinimumSectionSize(56);
    m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    m_table->horizontalHeader()->setSectionResizeMode(
        TierMapModel::Layer, QHeaderView::ResizeToContents);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentChanged, this,
        [this](const QModelIndex& current) {
            setReadout(current.isValid() ? m_model->sentence(current) : QString());
        });
}

void TierMap::setPlan(const std::shared_ptr<const PlanReport>& plan)
{
    if (plan != nullptr && plan == m_plan)
        return;
    m_plan = plan;
    m_model->setPlan(plan);
    const bool known = m_model->rowCount() > 0;
    m_table->setVisible(known);
    m_sentence->setVisible(!known);
    m_sentence->setText(plan ? tr("The plan of this run does not say where each layer lies.")
                             : tr("This run has no plan that can be read."));
    setReadout({});
    showLegend();
    fitHeight();
}

void TierMap::fitHeight()
{
    const int rows = std::min(m_model->rowCount(), kMostRows);
    const int header = m_table->horizontalHeader()->sizeHint().height();
    m_table->setFixedHeight(header + rows * m_table->verticalHeader()->defaultSectionSize() + 4);
}

void TierMap::showLegend()
{
    std::vector<Legend::Entry> entries;
    for (int tier = 0; m_plan && tier < TierMapModel::TierCount; ++tier) {
        const auto planned =
            std::find_if(m_plan->tiers.begin(), m_plan->tiers.end(), [tier](const PlanTier& one) {
                return one.tier == kTierKeys[static_cast<std::size_t>(tier)];
            });
        if (planned == m_plan->tiers.end() || planned->totalBytes == 0)
            continue;
        const QString name = TierMapModel::tierName(static_cast<TierMapModel::Tier>(tier));
        const QString total = memoryText(static_cast<double>(planned->totalBytes));
        const QString word =
            planned->budgetBytes > 0
                ? tr("%1: %2 of %3", "tier, planned, limit")
                      .arg(name, total, memoryText(static_cast<double>(planned->budgetBytes)))
                : tr("%1: %2", "tier, planned").arg(name, total);
        entries.push_back(
            {word, tr("Bytes that the plan puts there, and the limit."), Legend::Mark::Box,
                [tier](const QPalette& palette) { return tierColor(palette, tier); }});
    }
    legend()->setEntries(std::move(entries));
}

} // namespace mr::ui
