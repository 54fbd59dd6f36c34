#include "widgets/empty_state.h"

#include "widgets/card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace mr::ui {

EmptyState::EmptyState(const QString& sentence, const QString& hint, QWidget* parent)
    : QWidget(parent)
    , m_buttons(new QHBoxLayout)
{
    auto* title = new QLabel(sentence);
    QFont large = title->font();
    large.setPointSizeF(large.pointSizeF() * 1.4);
    title->setFont(large);
    auto* explanation = makeMutedLabel();
    explanation->setText(hint);
    explanation->setAlignment(Qt::AlignCenter);
    m_buttons->addStretch(1);
    m_buttons->addStretch(1);
    auto* layout = new QVBoxLayout(this);
    layout->setSpacing(12);
    layout->addStretch(1);
    layout->addWidget(title, 0, Qt::AlignHCenter);
    layout->addWidget(explanation);
    layout->addLayout(m_buttons);
    layout->addStretch(2);
}

QPushButton* EmptyState::addButton(const QString& text)
{
    auto* button = new QPushButton(text);
    const int stretches = 2;
    button->setDefault(m_buttons->count() == stretches);
    m_buttons->insertWidget(m_buttons->count() - 1, button);
    return button;
}

} // namespace mr::ui
