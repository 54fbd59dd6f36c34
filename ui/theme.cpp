#include "theme.h"

#include "text/theme_colors.h"
#include "widgets/readable_style.h"

#include <QApplication>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>

#include <array>

namespace mr::ui {

namespace {

constexpr auto kPortalService = "org.freedesktop.portal.Desktop";
constexpr auto kPortalPath = "/org/freedesktop/portal/desktop";
constexpr auto kPortalInterface = "org.freedesktop.portal.Settings";
constexpr auto kAppearance = "org.freedesktop.appearance";
constexpr auto kColorScheme = "color-scheme";
constexpr uint kPrefersDark = 1; // 2: light, 0: no preference
constexpr auto kReducedMotion = "reduced-motion";
constexpr uint kPrefersNoMotion = 1; // 0: no preference
// GNOME's own setting, which older portals have in place of the one above.
constexpr auto kGnome = "org.gnome.desktop.interface";
constexpr auto kGnomeAnimations = "enable-animations";

struct Setting {
    const char* space;
    const char* key;
};
constexpr std::array kSettings = {Setting{kAppearance, kColorScheme},
    Setting{kAppearance, kReducedMotion}, Setting{kGnome, kGnomeAnimations}};

// The portal wraps the answer of Read in a second variant.
QVariant unwrapped(const QVariant& value)
{
    QVariant inner = value;
    while (inner.canConvert<QDBusVariant>())
        inner = inner.value<QDBusVariant>().variant();
    return inner;
}

} // namespace

Theme::Theme(const QDBusConnection& bus, QObject* parent)
    : QObject(parent)
    , m_bus(bus)
    , m_style(new ReadableStyle)
{
    QApplication::setStyle(m_style);
    apply();
    if (!m_bus.isConnected())
        return;
    qRegisterMetaType<QDBusVariant>(); // else the slot is not found, and nothing says so
    m_bus.connect(QLatin1String(kPortalService), QLatin1String(kPortalPath),
        QLatin1String(kPortalInterface), QStringLiteral("SettingChanged"), this,
        SLOT(portalChanged(QString, QString, QDBusVariant)));
    for (const Setting& setting : kSettings)
        askPortal(QLatin1String(setting.space), QLatin1String(setting.key));
}

void Theme::setChoice(ThemeChoice choice)
{
    m_choice = choice;
    apply();
}

void Theme::askPortal(const QString& space, const QString& key)
{
    QDBusMessage call = QDBusMessage::createMethodCall(QLatin1String(kPortalService),
        QLatin1String(kPortalPath), QLatin1String(kPortalInterface), QStringLiteral("Read"));
    call << space << key;
    auto* watcher = new QDBusPendingCallWatcher(m_bus.asyncCall(call), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this, watcher, space, key] {
        const QDBusPendingReply<QDBusVariant> reply = *watcher;
        if (!reply.isError())
            portalChanged(space, key, reply.value());
        watcher->deleteLater();
    });
}

void Theme::portalChanged(const QString& space, const QString& key, const QDBusVariant& value)
{
    const QVariant told = unwrapped(value.variant());
    const auto is = [&](const char* itsSpace, const char* itsKey) {
        return space == QLatin1String(itsSpace) && key == QLatin1String(itsKey);
    };
    if (is(kAppearance, kColorScheme))
        m_systemDark = told.toUInt() == kPrefersDark;
    else if (is(kAppearance, kReducedMotion))
        m_prefersNoMotion = told.toUInt() == kPrefersNoMotion;
    else if (is(kGnome, kGnomeAnimations))
        m_gnomeAnimates = told.toBool();
    else
        return;
    apply();
}

void Theme::apply()
{
    const bool dark =
        m_choice == ThemeChoice::Dark || (m_choice == ThemeChoice::System && m_systemDark);
    QApplication::setPalette(themePalette(dark));
    if (m_style)
        m_style->setMotion(m_gnomeAnimates && !m_prefersNoMotion);
}

} // namespace mr::ui
