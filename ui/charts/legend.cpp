#include "charts/legend.h"

#include <QHelpEvent>
#include <QPainter>
#include <QStringList>
#include <QToolTip>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kMarkWidth = 12;
constexpr int kMarkGap = 5;
constexpr int kEntryGap = 14;

} // namespace

Legend::Legend(QWidget* parent)
    : QWidget(parent)
{
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void Legend::setEntries(std::vector<Entry> entries)
{
    m_entries = std::move(entries);
    QStringList words;
    for (const Entry& entry : m_entries)
        words << entry.word;
    setAccessibleName(tr("Legend: %1").arg(words.join(QStringLiteral(", "))));
    updateGeometry();
    update();
}

int Legend::entryWidth(const Entry& entry) const
{
    return kMarkWidth + kMarkGap + fontMetrics().horizontalAdvance(entry.word) + 1;
}

std::vector<QRect> Legend::place(int width) const
{
    std::vector<QRect> places;
    const int height = fontMetrics().height() + 2;
    int x = 0;
    int y = 0;
    for (const Entry& entry : m_entries) {
        const int wide = entryWidth(entry);
        if (x > 0 && x + wide > width) {
            x = 0;
            y += height;
        }
        places.emplace_back(x, y, wide, height);
        x += wide + kEntryGap;
    }
    return places;
}

QSize Legend::sizeHint() const
{
    int width = 0;
    for (const Entry& entry : m_entries)
        width += entryWidth(entry) + kEntryGap;
    return {std::max(0, width - kEntryGap), m_entries.empty() ? 0 : fontMetrics().height() + 2};
}

QSize Legend::minimumSizeHint() const
{
    int widest = 0;
    for (const Entry& entry : m_entries)
        widest = std::max(widest, entryWidth(entry));
    return {widest, m_entries.empty() ? 0 : fontMetrics().height() + 2};
}

int Legend::heightForWidth(int width) const
{
    const std::vector<QRect> places = place(width);
    return places.empty() ? 0 : places.back().bottom() + 1;
}

void Legend::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const std::vector<QRect> places = place(width());
    for (std::size_t i = 0; i < m_entries.size(); ++i) {
        const Entry& entry = m_entries[i];
        const QRect& at = places[i];
        const QColor color = entry.color(palette());
        const QRectF mark(at.left(), at.center().y() - 5.0, kMarkWidth, 11.0);
        if (entry.mark == Mark::Line)
            painter.fillRect(QRectF(mark.left(), at.center().y() - 0.5, kMarkWidth, 2.5), color);
        else if (entry.mark == Mark::Dash) {
            painter.fillRect(QRectF(mark.left(), at.center().y(), 5.0, 1.5), color);
            painter.fillRect(QRectF(mark.left() + 7.0, at.center().y(), 5.0, 1.5), color);
        } else if (entry.mark == Mark::Box)
            painter.fillRect(mark.adjusted(1, 0, -1, 0), color);
        else {
            painter.setPen(Qt::NoPen);
            painter.setBrush(color);
            painter.drawEllipse(mark.center(), 4.0, 4.0);
        }
        painter.setPen(palette().color(QPalette::WindowText));
        painter.drawText(at.adjusted(kMarkWidth + kMarkGap, 0, 2, 0),
            Qt::AlignVCenter | Qt::AlignLeft, entry.word);
    }
}

bool Legend::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const std::vector<QRect> places = place(width());
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i].contains(help->pos())) {
            QToolTip::showText(help->globalPos(), m_entries[i].explanation, this, places[i]);
            return true;
        }
    }
    QToolTip::hideText();
    return true;
}

} // namespace mr::ui
