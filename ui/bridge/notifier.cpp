#include "bridge/notifier.h"

#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QVariantMap>

namespace mr::ui {

namespace {

// Desktop Notifications Specification 1.2.
constexpr auto kService = "org.freedesktop.Notifications";
constexpr auto kPath = "/org/freedesktop/Notifications";
constexpr auto kInterface = "org.freedesktop.Notifications";
constexpr auto kDefaultAction = "default"; // a click on the message itself
constexpr auto kOpenAction = "open";
constexpr int kServersTime = -1;
constexpr uchar kNormal = 1;

} // namespace

Notifier::Notifier(const QDBusConnection& bus, QObject* parent)
    : QObject(parent)
    , m_bus(bus)
{
    if (!m_bus.isConnected())
        return;
    const auto listen = [this](const char* signal, const char* slot) {
        m_bus.connect(QLatin1String(kService), QLatin1String(kPath), QLatin1String(kInterface),
            QLatin1String(signal), this, slot);
    };
    listen("ActionInvoked", SLOT(onAction(uint, QString)));
    listen("NotificationClosed", SLOT(onClosed(uint, uint)));
}

void Notifier::show(qint64 runId, const QString& title, const QString& text)
{
    if (!m_bus.isConnected())
        return;
    QDBusMessage call = QDBusMessage::createMethodCall(QLatin1String(kService),
        QLatin1String(kPath), QLatin1String(kInterface), QStringLiteral("Notify"));
    const QStringList actions = {
        QLatin1String(kDefaultAction), tr("Open"), QLatin1String(kOpenAction), tr("Open")};
    const QVariantMap hints = {{QStringLiteral("desktop-entry"), QStringLiteral("millrace")},
        {QStringLiteral("urgency"), QVariant::fromValue(kNormal)}};
    // The service may read markup in the body, so plain text is escaped.
    call << QStringLiteral("Millrace") << m_runs.key(runId, 0U) << QStringLiteral("millrace")
         << title << text.toHtmlEscaped() << actions << hints << kServersTime;
    auto* watcher = new QDBusPendingCallWatcher(m_bus.asyncCall(call), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this, watcher, runId] {
        watcher->deleteLater();
        const QDBusPendingReply<uint> reply = *watcher;
        if (!reply.isError())
            m_runs.insert(reply.value(), runId);
    });
}

// The service signals actions on all programs' messages to all of them.
void Notifier::onAction(uint id, const QString& action)
{
    const bool isOurs =
        action == QLatin1String(kDefaultAction) || action == QLatin1String(kOpenAction);
    if (isOurs && m_runs.contains(id))
        emit openRequested(m_runs.value(id));
}

void Notifier::onClosed(uint id, uint)
{
    m_runs.remove(id);
}

} // namespace mr::ui
