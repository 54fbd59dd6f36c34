// The look of the application: the Fusion style with a light or dark palette (text/theme_colors.h).
//
// Threads  UI thread.

#pragma once

#include <QObject>

class QDBusVariant;

namespace mr::ui {

enum class ThemeChoice { System, Light, Dark };

// Sets style and palette of the application and follows the desktop's preference for System
// (freedesktop portal, asynchronous; light where there is none).
class Theme final : public QObject
{
    Q_OBJECT

public:
    explicit Theme(QObject* parent = nullptr);

    ThemeChoice choice() const { return m_choice; }
    void setChoice(ThemeChoice choice);

private slots:
    void portalChanged(const QString& space, const QString& key, const QDBusVariant& value);

private:
    void askPortal();
    void apply();

    ThemeChoice m_choice = ThemeChoice::System;
    bool m_systemDark = false;
};

} // namespace mr::ui
