#include "theme.h"

#include "text/theme_colors.h"

#include <QApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QStyleFactory>

namespace mr::ui {

namespace {

constexpr auto kPortalService = "org.freedesktop.portal.Desktop";
constexpr auto kPortalPath = "/org/freedesktop/portal/desktop";
constexpr auto kPortalInterface = "org.freedesktop.portal.Settings";
constexpr auto kAppearance = "org.freedesktop.appearance";
constexpr auto kColorScheme = "color-scheme";
constexpr uint kPrefersDark = 1; // 2: light, 0: no preference

// The portal wraps the answer of Read in a second variant.
QVariant unwrapped(const QVariant& value)
{
    QVariant inner = value;
    while (inner.canConvert<QDBusVariant>())
        inner = inner.value<QDBusVariant>().variant();
    return inner;
}

} // namespace

Theme::Theme(QObject* parent)
    : QObject(parent)
{
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    apply();
    QDBusConnection bus = QDBusConnection::sessionBus();
    if (!bus.isConnected())
        return;
    bus.connect(QLatin1String(kPortalService), QLatin1String(kPortalPath),
        QLatin1String(kPortalInterface), QStringLiteral("SettingChanged"), this,
        SLOT(portalChanged(QString, QString, QDBusVariant)));
    askPortal();
}

void Theme::setChoice(ThemeChoice choice)
{
    m_choice = choice;
    apply();
}

void Theme::askPortal()
{
    QDBusMessage call = QDBusMessage::createMethodCall(QLatin1String(kPortalService),
        QLatin1String(kPortalPath), QLatin1String(kPortalInterface), QStringLiteral("Read"));
    call << QString(QLatin1String(kAppearance)) << QString(QLatin1String(kColorScheme));
    auto* watcher =
        new QDBusPendingCallWatcher(QDBusConnection::sessionBus().asyncCall(call), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this, watcher] {
        const QDBusPendingReply<QDBusVariant> reply = *watcher;
        if (!reply.isError())
            portalChanged(QLatin1String(kAppearance), QLatin1String(kColorScheme), reply.value());
        watcher->deleteLater();
    });
}

void Theme::portalChanged(const QString& space, const QString& key, const QDBusVariant& value)
{
    if (space != QLatin1String(kAppearance) || key != QLatin1String(kColorScheme))
        return;
    m_systemDark = unwrapped(value.variant()).toUInt() == kPrefersDark;
    apply();
}

void Theme::apply()
{
    const bool dark =
        m_choice == ThemeChoice::Dark || (m_choice == ThemeChoice::System && m_systemDark);
    QApplication::setPalette(themePalette(dark));
}

} // namespace mr::ui
