#include "widgets/notice_bar.h"

#include "text/svg_icon.h"
#include "widgets/message_label.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>
#include <QToolButton>

namespace mr::ui {

NoticeBar::NoticeBar(QWidget* parent)
    : QWidget(parent)
    , m_message(new MessageLabel(this))
    , m_stop(new QPushButton(this))
    , m_close(new QToolButton(this))
{
    m_stop->setObjectName(QStringLiteral("stopOpening"));
    m_stop->hide();
    m_close->setIcon(svgIcon(QStringLiteral("error")));
    m_close->setAutoRaise(true);
    m_close->setFocusPolicy(Qt::StrongFocus);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(16, 8, 16, 0);
    layout->addWidget(m_message, 1);
    layout->addWidget(m_stop);
    layout->addWidget(m_close);
    hide();
    connect(m_stop, &QPushButton::clicked, this, &NoticeBar::stopRequested);
    connect(m_close, &QToolButton::clicked, this, &QWidget::hide);
    retranslate();
}

void NoticeBar::showError(const QString& message)
{
    m_message->show(MessageLabel::Kind::Error, message);
    m_stop->hide();
    show();
}

void NoticeBar::showBusy(const QString& message)
{
    m_message->show(MessageLabel::Kind::Busy, message);
    m_stop->hide();
    show();
}

void NoticeBar::showStoppable(const QString& message)
{
    m_message->show(MessageLabel::Kind::Busy, message);
    m_stop->show();
    show();
}

void NoticeBar::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslate();
}

void NoticeBar::retranslate()
{
    m_stop->setText(tr("Stop"));
    m_close->setAccessibleName(tr("Dismiss the message"));
    m_close->setToolTip(m_close->accessibleName());
}

} // namespace mr::ui
