#include "widgets/status_strip.h"

#include "models/run_progress.h"
#include "text/theme_colors.h"
#include "text/units.h"
#include "widgets/stacked_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QStyleOptionFocusRect>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr std::int64_t kMinuteMs = 60'000;

std::uint64_t budgetOf(const RunSnapshot& snapshot, const std::string& tier)
{
    if (!snapshot.plan)
        return 0;
    for (const PlanTier& planned : snapshot.plan->tiers) {
        if (planned.tier == tier)
            return planned.budgetBytes;
    }
    return 0;
}

} // namespace

double recentStallPercent(const StepSeries& steps, std::int64_t windowMs)
{
    if (steps.empty())
        return std::numeric_limits<double>::quiet_NaN();
    const std::int64_t begin = steps.back().timeMs - windowMs;
    std::int64_t wall = 0;
    std::int64_t compute = 0;
    for (std::size_t i = steps.size(); i-- > 0;) {
        const StepRow& row = steps[i];
        if (row.timeMs <= begin && i + 1 < steps.size())
            break;
        wall += row.wallUs;
        compute += row.computeUs;
    }
    if (wall <= 0)
        return std::numeric_limits<double>::quiet_NaN();
    return 100.0 * static_cast<double>(wall - compute) / static_cast<double>(wall);
}

StatusStrip::StatusStrip(QWidget* parent)
    : QAbstractButton(parent)
    , m_run(new QLabel(this))
    , m_stall(new QLabel(this))
    , m_device(makeTier())
    , m_host(makeTier())
{
    setObjectName(QStringLiteral("statusStrip"));
    setCursor(Qt::PointingHandCursor);
    setFocusPolicy(Qt::TabFocus);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 3, 8, 3);
    layout->setSpacing(8);
    layout->addWidget(m_run, 1);
    layout->addWidget(m_stall);
    for (const Tier& tier : {m_device, m_host}) {
        layout->addSpacing(10);
        layout->addWidget(tier.label);
        layout->addWidget(tier.bar);
    }
    // Clicks belong to the strip, not to the labels on it.
    for (auto* label : findChildren<QLabel*>())
        label->setAttribute(Qt::WA_TransparentForMouseEvents);
    refresh();
}

StatusStrip::Tier StatusStrip::makeTier()
{
    Tier tier{new QLabel(this), new StackedBar(this)};
    tier.bar->setThin(true);
    tier.bar->setAttribute(Qt::WA_TransparentForMouseEvents);
    tier.bar->setFixedWidth(tier.bar->sizeHint().width());
    return tier;
}

void StatusStrip::setSnapshot(const RunSnapshotPtr& snapshot)
{
    m_snapshot = snapshot;
    refresh();
}

QSize StatusStrip::sizeHint() const
{
    return {400, fontMetrics().height() + 10};
}

QString StatusStrip::runText() const
{
    return m_run->text();
}

void StatusStrip::showTier(const Tier& tier, const QString& name, const std::string& key,
    std::int64_t usedBytes, const QColor& color)
{
    const std::uint64_t budget = budgetOf(*m_snapshot, key);
    const auto used = static_cast<quint64>(std::max<std::int64_t>(0, usedBytes));
    const QString text = budget > 0 ? tr("%1 %2 of %3")
                                          .arg(name, memoryText(static_cast<double>(used)),
                                              memoryText(static_cast<double>(budget)))
                                    : tr("%1 %2").arg(name, memoryText(static_cast<double>(used)));
    tier.label->setText(text);
    tier.bar->setData({{name, used, color}}, budget);
    tier.bar->setAccessibleName(text);
}

void StatusStrip::show(bool active)
{
    m_stall->setVisible(active);
    for (const Tier& tier : {m_device, m_host}) {
        tier.label->setVisible(active);
        tier.bar->setVisible(active);
    }
}

QString StatusStrip::line(const RunSnapshot& snapshot)
{
    const RunProgress progress = progressOf(snapshot);
    const QString name = QString::fromStdString(snapshot.run.name);
    QString text =
        tr("%1: step %2 of %3").arg(name, countText(progress.step), countText(progress.totalSteps));
    if (snapshot.run.status == RunStatus::Paused)
        text += tr(", paused");
    else if (progress.remainingSeconds >= 0.0)
        text += tr(", %1 left").arg(durationText(progress.remainingSeconds));
    if (snapshot.run.simulatedLink)
        text += tr(" (simulated link)");
    return text;
}

void StatusStrip::refresh()
{
    show(m_snapshot != nullptr);
    if (!m_snapshot) {
        m_run->setText(tr("No run is active."));
        setAccessibleName(m_run->text());
        setToolTip(tr("Open the Live page"));
        return;
    }
    const QString text = line(*m_snapshot);
    m_run->setText(text);
    const double stall = recentStallPercent(m_snapshot->steps, kMinuteMs);
    m_stall->setText(std::isfinite(stall)
                         ? tr("Waiting %1 of the last minute").arg(percentText(stall))
                         : QString());
    const ThemeColors& colors = themeColors(palette());
    const StepSeries& steps = m_snapshot->steps;
    const std::int64_t device = steps.empty() ? 0 : steps.back().devicePeakBytes;
    const std::int64_t host = steps.empty() ? 0 : steps.back().hostPeakBytes;
    showTier(m_device, tr("Device"), "device", device, colors.series[0]);
    showTier(m_host, tr("Host"), "host", host, colors.series[1]);
    setAccessibleName(text);
    setToolTip(tr("Open the Live page"));
}

void StatusStrip::changeEvent(QEvent* event)
{
    QAbstractButton::changeEvent(event);
    if (event->type() == QEvent::LanguageChange || event->type() == QEvent::PaletteChange)
        refresh();
}

void StatusStrip::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setPen(themeColors(palette()).border);
    painter.drawLine(0, 0, width(), 0);
    if (!hasFocus())
        return;
    QStyleOptionFocusRect option;
    option.initFrom(this);
    option.rect = rect().adjusted(2, 2, -2, -2);
    style()->drawPrimitive(QStyle::PE_FrameFocusRect, &option, &painter, this);
}

} // namespace mr::ui
