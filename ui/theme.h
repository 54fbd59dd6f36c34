// The look of the application: a style (widgets/readable_style.h) with a light or dark palette
// (text/theme_colors.h).
//
// Threads  UI thread.

#pragma once

#include <QDBusConnection>
#include <QDBusVariant>
#include <QObject>
#include <QPointer>

namespace mr::ui {

class ReadableStyle;

enum class ThemeChoice { System, Light, Dark };

// Sets style and palette of the application and follows what the desktop prefers (freedesktop
// portal, asynchronous): light or dark, for System; no motion. Where there is no portal, light and
// Qt's own motion.
class Theme final : public QObject
{
    Q_OBJECT

public:
    explicit Theme(
        const QDBusConnection& bus = QDBusConnection::sessionBus(), QObject* parent = nullptr);

    ThemeChoice choice() const { return m_choice; }
    void setChoice(ThemeChoice choice);

private slots:
    void portalChanged(const QString& space, const QString& key, const QDBusVariant& value);

private:
    void askPortal(const QString& space, const QString& key);
    void apply();

    QDBusConnection m_bus;
    QPointer<ReadableStyle> m_style; // the application's, until another is set
    ThemeChoice m_choice = ThemeChoice::System;
    bool m_systemDark = false;
    bool m_prefersNoMotion = false;
    bool m_gnomeAnimates = true;
};

} // namespace mr::ui
