// LookMenu: the button for colours, language, and the end of the program.
//
// Both choices are applied at once and kept in QSettings.
//
// Threads    GUI.
// Ownership  Theme and language are the application's and outlive the menu.

#pragma once

#include <QToolButton>

#include <array>

class QMenu;

namespace mr::ui {

class Language;
class Theme;

class LookMenu final : public QToolButton
{
    Q_OBJECT

public:
    LookMenu(Theme& theme, Language& language, QAction* quit, QWidget* parent);

    // Restores the theme and language that were chosen last time.
    static void restore(Theme& theme, Language& language);

protected:
    void changeEvent(QEvent* event) override;

private:
    void addThemes();
    void addLanguages();
    void retranslateUi();

    Theme& m_theme;
    Language& m_language;
    QMenu* m_menu;
    QAction* m_themeTitle = nullptr;
    QAction* m_languageTitle = nullptr;
    std::array<QAction*, 3> m_themeActions{};
};

} // namespace mr::ui
