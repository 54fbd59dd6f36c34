#include "widgets/nav_rail.h"

#include "text/theme_colors.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QActionGroup>
#include <QPainter>
#include <QPainterPath>
#include <QToolButton>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kWidth = 168;
constexpr int kRailIconExtent = 20;

// A flat button. Checked, it has a bar and a tint, not only another colour.
class RailButton final : public QToolButton
{
public:
    using QToolButton::QToolButton;

protected:
    void paintEvent(QPaintEvent*) override
    {
        const ThemeColors& colors = themeColors(palette());
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        const QRectF frame = QRectF(rect()).adjusted(1, 1, -1, -1);
        if (isChecked() || underMouse() || isDown()) {
            QColor tint = colors.accent;
            tint.setAlphaF(isChecked() ? 0.18F : 0.08F);
            painter.setPen(Qt::NoPen);
            painter.setBrush(tint);
            painter.drawRoundedRect(frame, 6, 6);
        }
        if (isChecked()) {
            painter.setBrush(colors.accent);
            painter.drawRoundedRect(QRectF(2, 8, 3, height() - 16), 1.5, 1.5);
        }
        if (hasFocus()) {
            painter.setPen(QPen(colors.accent, 1.5));
            painter.setBrush(Qt::NoBrush);
            painter.drawRoundedRect(frame, 6, 6);
        }
        const QRect iconRect(
            14, (height() - kRailIconExtent) / 2, kRailIconExtent, kRailIconExtent);
        icon().paint(&painter, iconRect);
        QFont own = font();
        own.setBold(isChecked());
        painter.setFont(own);
        painter.setPen(palette().color(QPalette::WindowText));
        painter.drawText(rect().adjusted(iconRect.right() + 12, 0, -4, 0),
            Qt::AlignLeft | Qt::AlignVCenter, text());
    }

    QSize sizeHint() const override { return {kWidth - 16, fontMetrics().height() + 20}; }
};

// For a screen reader a page of the window, and not a check box, as Qt calls a checkable button.
class RailAccessible final : public QAccessibleWidget
{
public:
    explicit RailAccessible(RailButton& button)
        : QAccessibleWidget(&button, QAccessible::PageTab)
        , m_button(button)
    {
    }

    QAccessible::State state() const override
    {
        QAccessible::State state = QAccessibleWidget::state();
        state.selectable = true;
        state.selected = m_button.isChecked();
        return state;
    }

    QString text(QAccessible::Text kind) const override
    {
        return kind == QAccessible::Name ? m_button.text() : QAccessibleWidget::text(kind);
    }

    QStringList actionNames() const override
    {
        return QAccessibleWidget::actionNames() << pressAction();
    }

    void doAction(const QString& name) override
    {
        if (name == pressAction())
            m_button.click();
        else
            QAccessibleWidget::doAction(name);
    }

private:
    RailButton& m_button;
};

QAccessibleInterface* makeRailAccessible(const QString&, QObject* object)
{
    if (auto* button = dynamic_cast<RailButton*>(object))
        return new RailAccessible(*button);
    return nullptr;
}

void installRailAccessible()
{
    static const bool installed = [] {
        QAccessible::installFactory(makeRailAccessible);
        return true;
    }();
    static_cast<void>(installed);
}

} // namespace

NavRail::NavRail(QWidget* parent)
    : QWidget(parent)
    , m_group(new QActionGroup(this))
    , m_pages(new QVBoxLayout)
    , m_footer(new QVBoxLayout)
{
    installRailAccessible();
    setFixedWidth(kWidth);
    m_group->setExclusive(true);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 16, 8, 12);
    m_pages->setSpacing(4);
    layout->addLayout(m_pages);
    layout->addStretch(1);
    layout->addLayout(m_footer);
}

void NavRail::addPage(QAction* action)
{
    action->setCheckable(true);
    m_group->addAction(action);
    auto* button = new RailButton(this);
    button->setDefaultAction(action);
    button->setAttribute(Qt::WA_Hover);
    button->setFocusPolicy(Qt::StrongFocus);
    button->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_pages->addWidget(button);
}

void NavRail::addFooter(QWidget* widget)
{
    m_footer->addWidget(widget);
}

void NavRail::paintEvent(QPaintEvent*)
{
    const ThemeColors& colors = themeColors(palette());
    QPainter painter(this);
    painter.fillRect(rect(), colors.card);
    painter.setPen(colors.border);
    painter.drawLine(width() - 1, 0, width() - 1, height());
}

} // namespace mr::ui
