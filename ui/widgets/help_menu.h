// HelpMenu: the button for pages, glossary, shortcuts, versions, the log and a report.
//
// Threads  GUI.

#pragma once

#include <QToolButton>

#include <array>

class QAction;

namespace mr::ui {

class HelpMenu final : public QToolButton
{
    Q_OBJECT

public:
    enum class Entry { TenSteps, Privacy, Glossary, Shortcuts, About, Log, Report };
    Q_ENUM(Entry)

    explicit HelpMenu(QWidget* parent);

    QAction* action(Entry entry) const;

signals:
    void asked(mr::ui::HelpMenu::Entry entry);

protected:
    void changeEvent(QEvent* event) override;

private:
    void retranslateUi();

    std::array<QAction*, 7> m_actions{};
};

} // namespace mr::ui
