#include "widgets/message_label.h"

#include "text/svg_icon.h"
#include "text/theme_colors.h"

#include <QAccessible>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kMessageIconExtent = 16;

QString iconName(MessageLabel::Kind kind)
{
    switch (kind) {
    case MessageLabel::Kind::Good:
        return QStringLiteral("check");
    case MessageLabel::Kind::Warning:
        return QStringLiteral("warning");
    case MessageLabel::Kind::Error:
        return QStringLiteral("error");
    case MessageLabel::Kind::Busy:
        return QStringLiteral("refresh");
    case MessageLabel::Kind::Info:
        break;
    }
    return QStringLiteral("info");
}

QColor textColor(MessageLabel::Kind kind, const ThemeColors& colors)
{
    switch (kind) {
    case MessageLabel::Kind::Good:
        return colors.good;
    case MessageLabel::Kind::Warning:
        return colors.warning;
    case MessageLabel::Kind::Error:
        return colors.error;
    case MessageLabel::Kind::Info:
    case MessageLabel::Kind::Busy:
        break;
    }
    return colors.muted;
}

} // namespace

MessageLabel::MessageLabel(QWidget* parent)
    : QWidget(parent)
    , m_icon(new QLabel(this))
    , m_text(new QLabel(this))
{
    m_text->setWordWrap(true);
    m_text->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_icon->setFixedHeight(std::max(kMessageIconExtent, m_text->fontMetrics().height()));
    // Messages hold text of files; it is never markup.
    m_text->setTextFormat(Qt::PlainText);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(8);
    layout->addWidget(m_icon, 0, Qt::AlignTop);
    layout->addWidget(m_text, 1);
    hide();
}

void MessageLabel::show(Kind kind, const QString& text)
{
    if (text.isEmpty()) {
        clear();
        return;
    }
    const bool news = text != m_text->text();
    m_kind = kind;
    m_text->setText(text);
    setAccessibleName(text);
    recolor();
    setVisible(true);
    if (news && kind == Kind::Error) {
        QAccessibleEvent event(this, QAccessible::Alert);
        QAccessible::updateAccessibility(&event);
    }
}

void MessageLabel::showLines(Kind kind, const QStringList& lines)
{
    show(kind, lines.join(QLatin1Char('\n')));
}

void MessageLabel::clear()
{
    m_text->clear();
    setAccessibleName({});
    hide();
}

QString MessageLabel::text() const
{
    return m_text->text();
}

void MessageLabel::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        recolor();
}

void MessageLabel::recolor()
{
    const QColor color = textColor(m_kind, themeColors(palette()));
    QPalette own;
    own.setColor(QPalette::WindowText, color);
    m_text->setPalette(own);
    m_icon->setPixmap(svgPixmap(iconName(m_kind), color, kMessageIconExtent, devicePixelRatioF()));
}

} // namespace mr::ui
