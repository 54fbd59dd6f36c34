#include "widgets/toast.h"

#include "text/svg_icon.h"
#include "text/theme_colors.h"
#include "widgets/card.h"

#include <QAccessible>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeySequence>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>

namespace mr::ui {

namespace {

constexpr int kShownMs = 10'000;

} // namespace

Toast::Toast(QWidget* parent)
    : QFrame(parent)
    , m_text(new QLabel)
    , m_undo(new QPushButton)
    , m_close(new QToolButton)
    , m_timer(new QTimer(this))
{
    setObjectName(QStringLiteral("toast"));
    m_text->setTextFormat(Qt::PlainText);
    m_text->setWordWrap(true);
    m_undo->setObjectName(QStringLiteral("toastUndo"));
    m_close->setIcon(svgIcon(QStringLiteral("error")));
    m_close->setAutoRaise(true);
    m_close->setFocusPolicy(Qt::StrongFocus);
    m_timer->setInterval(kShownMs);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(12, 6, 8, 6);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_undo);
    layout->addWidget(m_close);
    connect(m_undo, &QPushButton::clicked, this, [this] {
        hide();
        emit undoRequested();
    });
    connect(m_close, &QToolButton::clicked, this, &QWidget::hide);
    connect(m_timer, &QTimer::timeout, this, &Toast::goAway);
    retranslate();
    hide();
}

void Toast::say(const QString& sentence, bool canUndo)
{
    m_text->setText(sentence);
    m_undo->setVisible(canUndo);
    setAccessibleName(sentence);
    show();
    m_timer->start();
    QAccessibleEvent event(this, QAccessible::Alert);
    QAccessible::updateAccessibility(&event);
}

QString Toast::text() const
{
    return m_text->text();
}

void Toast::goAway()
{
    if (underMouse() || m_undo->hasFocus() || m_close->hasFocus())
        return; // the timer asks again
    m_timer->stop();
    hide();
}

void Toast::changeEvent(QEvent* event)
{
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslate();
}

void Toast::retranslate()
{
    m_undo->setText(tr("Undo"));
    m_undo->setToolTip(QStringLiteral("%1 (%2)").arg(
        m_undo->text(), QKeySequence(QKeySequence::Undo).toString(QKeySequence::NativeText)));
    m_close->setAccessibleName(tr("Dismiss the message"));
    m_close->setToolTip(m_close->accessibleName());
}

void Toast::paintEvent(QPaintEvent*)
{
    paintCard(*this, themeColors(palette()).accent);
}

} // namespace mr::ui
