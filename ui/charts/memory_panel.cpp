#include "charts/memory_panel.h"

#include "charts/legend.h"
#include "text/plan_words.h"
#include "text/theme_colors.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/stacked_bar.h"

#include <QEvent>
#include <QLabel>
#include <QVBoxLayout>

#include <algorithm>
#include <vector>

namespace mr::ui {

namespace {

const PlanTier* tierOf(const PlanReport* plan, const std::string& name)
{
    if (plan == nullptr)
        return nullptr;
    const auto found = std::find_if(plan->tiers.begin(), plan->tiers.end(),
        [&name](const PlanTier& tier) { return tier.tier == name; });
    return found == plan->tiers.end() ? nullptr : &*found;
}

} // namespace

MemoryPanel::MemoryPanel(QWidget* parent)
    : QWidget(parent)
    , m_legend(new Legend)
{
    setAccessibleName(tr("Memory by tier"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    for (Row* row : {&m_device, &m_host, &m_disk}) {
        *row = {new QLabel, makeMutedLabel(), new StackedBar};
        layout->addWidget(row->name);
        layout->addWidget(row->bar);
        layout->addWidget(row->numbers);
        layout->addSpacing(6);
    }
    layout->addWidget(m_legend);
    layout->addStretch(1);
    rebuild();
}

void MemoryPanel::setMemory(std::shared_ptr<const PlanReport> plan, std::int64_t devicePeakBytes,
    std::int64_t hostPeakBytes)
{
    if (plan == m_plan && devicePeakBytes == m_devicePeak && hostPeakBytes == m_hostPeak)
        return;
    m_plan = std::move(plan);
    m_devicePeak = devicePeakBytes;
    m_hostPeak = hostPeakBytes;
    rebuild();
}

void MemoryPanel::show(Row& row, const std::string& tier, std::int64_t peakBytes)
{
    const PlanTier* planned = tierOf(m_plan.get(), tier);
    const bool used = peakBytes > 0 || (planned != nullptr && planned->totalBytes > 0);
    for (QWidget* widget : std::initializer_list<QWidget*>{row.name, row.numbers, row.bar})
        widget->setVisible(used);
    if (!used)
        return;
    const ThemeColors& colors = themeColors(palette());
    QVector<BarPiece> pieces;
    QStringList numbers;
    if (peakBytes > 0)
        numbers << tr("measured peak %1").arg(memoryText(static_cast<double>(peakBytes)));
    if (planned != nullptr) {
        for (const PlanBytes& kind : planned->kinds)
            pieces.push_back(
                {PlanWords::kind(kind.kind), kind.bytes, PlanWords::kindColor(kind.kind, colors)});
        numbers << tr("planned %1").arg(memoryText(static_cast<double>(planned->totalBytes)));
        if (planned->budgetBytes > 0)
            numbers << tr("limit %1").arg(memoryText(static_cast<double>(planned->budgetBytes)));
    } else {
        pieces.push_back({tr("Measured peak"), static_cast<quint64>(peakBytes), colors.series[5]});
    }
    row.name->setText(PlanWords::tier(tier));
    row.numbers->setText(numbers.join(QStringLiteral(" · ")));
    row.bar->setData(pieces, planned != nullptr ? planned->budgetBytes : 0);
    row.bar->setAccessibleName(row.name->text() + QStringLiteral(": ") + row.numbers->text());
}

void MemoryPanel::rebuild()
{
    show(m_device, "device", m_devicePeak);
    show(m_host, "host", m_hostPeak);
    show(m_disk, "disk", 0);
    std::vector<Legend::Entry> entries;
    if (m_plan) {
        for (const PlanTier& tier : m_plan->tiers) {
            for (const PlanBytes& kind : tier.kinds) {
                const QString word = PlanWords::kind(kind.kind);
                const bool known = std::any_of(entries.begin(), entries.end(),
                    [&word](const Legend::Entry& entry) { return entry.word == word; });
                if (kind.bytes > 0 && !known)
                    entries.push_back(
                        {word, {}, Legend::Mark::Box, [name = kind.kind](const QPalette& palette) {
                             return PlanWords::kindColor(name, themeColors(palette));
                         }});
            }
        }
    }
    m_legend->setEntries(std::move(entries));
}

QByteArray MemoryPanel::csv() const
{
    QByteArray text("tier,kind,bytes\n");
    if (m_plan) {
        for (const PlanTier& tier : m_plan->tiers) {
            for (const PlanBytes& kind : tier.kinds)
                text += QByteArray::fromStdString(
                    tier.tier + ",planned " + kind.kind + "," + std::to_string(kind.bytes) + "\n");
        }
    }
    text += "device,measured peak," + QByteArray::number(static_cast<qlonglong>(m_devicePeak));
    text += "\nhost,measured peak," + QByteArray::number(static_cast<qlonglong>(m_hostPeak));
    return text + '\n';
}

void MemoryPanel::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        rebuild();
}

} // namespace mr::ui
