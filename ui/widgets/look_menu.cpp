#include "widgets/look_menu.h"

#include "language.h"
#include "text/svg_icon.h"
#include "theme.h"

#include <QActionGroup>
#include <QEvent>
#include <QMenu>
#include <QSettings>

namespace mr::ui {

namespace {

const QString kThemeKey = QStringLiteral("look/theme");
const QString kLanguageKey = QStringLiteral("look/language");

} // namespace

LookMenu::LookMenu(Theme& theme, Language& language, QAction* quit, QWidget* parent)
    : QToolButton(parent)
    , m_theme(theme)
    , m_language(language)
    , m_menu(new QMenu(this))
{
    addThemes();
    addLanguages();
    m_menu->addSeparator();
    m_menu->addAction(quit);
    setIcon(svgIcon(QStringLiteral("settings")));
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setAutoRaise(true);
    setPopupMode(QToolButton::InstantPopup);
    setFocusPolicy(Qt::StrongFocus);
    setMenu(m_menu);
    retranslateUi();
}

void LookMenu::restore(Theme& theme, Language& language)
{
    const QSettings settings;
    const int choice = settings.value(kThemeKey, 0).toInt();
    if (choice >= 0 && choice <= static_cast<int>(ThemeChoice::Dark))
        theme.setChoice(static_cast<ThemeChoice>(choice));
    language.choose(settings.value(kLanguageKey).toString());
}

void LookMenu::addThemes()
{
    m_themeTitle = m_menu->addSection(QString());
    auto* themes = new QActionGroup(this);
    for (std::size_t i = 0; i < m_themeActions.size(); ++i) {
        QAction* action = m_menu->addAction(QString());
        action->setCheckable(true);
        action->setChecked(static_cast<std::size_t>(m_theme.choice()) == i);
        themes->addAction(action);
        connect(action, &QAction::triggered, this, [this, i] {
            m_theme.setChoice(static_cast<ThemeChoice>(i));
            QSettings().setValue(kThemeKey, static_cast<int>(i));
        });
        m_themeActions.at(i) = action;
    }
}

void LookMenu::addLanguages()
{
    m_languageTitle = m_menu->addSection(QString());
    auto* languages = new QActionGroup(this);
    for (const Language::Entry& entry : Language::available()) {
        QAction* action = m_menu->addAction(entry.name);
        action->setCheckable(true);
        action->setChecked(entry.code == m_language.code());
        languages->addAction(action);
        connect(action, &QAction::triggered, this, [this, code = entry.code] {
            m_language.choose(code);
            QSettings().setValue(kLanguageKey, code);
        });
    }
}

void LookMenu::changeEvent(QEvent* event)
{
    QToolButton::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void LookMenu::retranslateUi()
{
    setText(tr("Appearance"));
    setAccessibleName(tr("Appearance and language"));
    m_themeTitle->setText(tr("Colours"));
    m_languageTitle->setText(tr("Language"));
    m_themeActions[0]->setText(tr("As the desktop"));
    m_themeActions[1]->setText(tr("Light"));
    m_themeActions[2]->setText(tr("Dark"));
}

} // namespace mr::ui
