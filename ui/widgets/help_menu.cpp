#include "widgets/help_menu.h"

#include "text/svg_icon.h"

#include <QAction>
#include <QEvent>
#include <QMenu>

namespace mr::ui {

HelpMenu::HelpMenu(QWidget* parent)
    : QToolButton(parent)
{
    auto* menu = new QMenu(this);
    for (std::size_t i = 0; i < m_actions.size(); ++i) {
        m_actions.at(i) = menu->addAction(QString());
        connect(m_actions.at(i), &QAction::triggered, this,
            [this, i] { emit asked(static_cast<Entry>(i)); });
    }
    action(Entry::Shortcuts)->setShortcut(QKeySequence::HelpContents); // F1
    setObjectName(QStringLiteral("help"));
    setIcon(svgIcon(QStringLiteral("help")));
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setAutoRaise(true);
    setPopupMode(QToolButton::InstantPopup);
    setFocusPolicy(Qt::StrongFocus);
    setMenu(menu);
    retranslateUi();
}

QAction* HelpMenu::action(Entry entry) const
{
    return m_actions.at(static_cast<std::size_t>(entry));
}

void HelpMenu::changeEvent(QEvent* event)
{
    QToolButton::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void HelpMenu::retranslateUi()
{
    setText(tr("Help"));
    setAccessibleName(tr("Help"));
    action(Entry::TenSteps)->setText(tr("From your text to Ollama"));
    action(Entry::Privacy)->setText(tr("What leaves this PC"));
    action(Entry::Glossary)->setText(tr("What does this mean?"));
    action(Entry::Shortcuts)->setText(tr("Shortcuts"));
    action(Entry::About)->setText(tr("About Millrace"));
    action(Entry::Log)->setText(tr("Open log"));
    action(Entry::Report)->setText(tr("Save report…"));
}

} // namespace mr::ui
