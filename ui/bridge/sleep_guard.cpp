#include "bridge/sleep_guard.h"

#include <QDBusError>
#include <QDBusMessage>
#include <QDBusObjectPath>
#include <QDBusPendingCallWatcher>
#include <QDBusReply>
#include <QVariantMap>

#include <utility>

namespace mr::ui {

namespace {

const QString kName = QStringLiteral("Millrace");

struct Service {
    const char* name;
    const char* path;
    const char* interface;
};

// systemd: Inhibitor Locks. The others: the idle inhibition of freedesktop.org, and of the portal.
constexpr Service kLogind = {
    "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"};
constexpr Service kScreenSaver = {
    "org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver", "org.freedesktop.ScreenSaver"};
constexpr Service kPortal = {"org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop",
    "org.freedesktop.portal.Inhibit"};
constexpr auto kPortalRequest = "org.freedesktop.portal.Request";
constexpr uint kPortalIdle = 8;

QDBusMessage callOf(const Service& service, const char* method)
{
    return QDBusMessage::createMethodCall(QLatin1String(service.name), QLatin1String(service.path),
        QLatin1String(service.interface), QLatin1String(method));
}

QDBusMessage logindLock(const char* what, const QString& why, const char* mode)
{
    QDBusMessage call = callOf(kLogind, "Inhibit");
    call << QString(QLatin1String(what)) << kName << why << QString(QLatin1String(mode));
    return call;
}

} // namespace

SleepGuard::SleepGuard(
    const QDBusConnection& system, const QDBusConnection& session, QObject* parent)
    : QObject(parent)
    , m_system(system)
    , m_session(session)
{
    if (m_system.isConnected())
        m_system.connect(QLatin1String(kLogind.name), QLatin1String(kLogind.path),
            QLatin1String(kLogind.interface), QStringLiteral("PrepareForSleep"), this,
            SLOT(onPrepareForSleep(bool)));
}

SleepGuard::~SleepGuard()
{
    release();
}

void SleepGuard::hold(const QString& why)
{
    if (m_state != State::Off)
        return;
    ++m_asked;
    m_why = why;
    m_open = 2;
    setState(State::Asked);
    holdIdle();
    holdScreen();
    delaySleep();
}

void SleepGuard::release()
{
    ++m_asked; // answers that are on their way are given back at once
    m_idle = {};
    m_delay = {};
    if (std::exchange(m_hasScreen, false)) {
        QDBusMessage call = callOf(kScreenSaver, "UnInhibit");
        call << m_screenCookie;
        m_session.send(call);
    }
    if (!m_portalRequest.isEmpty())
        m_session.send(QDBusMessage::createMethodCall(QLatin1String(kPortal.name),
            std::exchange(m_portalRequest, {}), QLatin1String(kPortalRequest),
            QStringLiteral("Close")));
    setState(State::Off);
}

void SleepGuard::ask(QDBusConnection bus, const QDBusMessage& call, Answered answered)
{
    // A call to a bus that is not there would never be answered.
    if (!bus.isConnected()) {
        answered(QDBusMessage::createError(QDBusError::Disconnected, {}));
        return;
    }
    auto* watcher = new QDBusPendingCallWatcher(bus.asyncCall(call), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this,
        [watcher, answered = std::move(answered)] {
            watcher->deleteLater();
            answered(watcher->reply());
        });
}

void SleepGuard::holdIdle()
{
    ask(m_system, logindLock("idle", m_why, "block"),
        [this, asked = m_asked](const QDBusMessage& message) {
            const QDBusReply<QDBusUnixFileDescriptor> reply = message;
            if (asked != m_asked)
                return; // the reply closes its descriptor
            const bool isHeld = reply.isValid() && reply.value().isValid();
            if (isHeld)
                m_idle = reply.value();
            note(isHeld);
        });
}

void SleepGuard::holdScreen()
{
    QDBusMessage question = callOf(kScreenSaver, "Inhibit");
    question << kName << m_why;
    ask(m_session, question, [this, asked = m_asked](const QDBusMessage& message) {
        const QDBusReply<uint> reply = message;
        if (!reply.isValid()) {
            if (asked == m_asked)
                holdPortal();
            return;
        }
        if (asked != m_asked) {
            QDBusMessage back = callOf(kScreenSaver, "UnInhibit");
            back << reply.value();
            m_session.send(back);
            return;
        }
        m_screenCookie = reply.value();
        m_hasScreen = true;
        note(true);
    });
}

void SleepGuard::holdPortal()
{
    QDBusMessage question = callOf(kPortal, "Inhibit");
    question << QString() << kPortalIdle << QVariantMap{{QStringLiteral("reason"), m_why}};
    ask(m_session, question, [this, asked = m_asked](const QDBusMessage& message) {
        const QDBusReply<QDBusObjectPath> reply = message;
        if (asked != m_asked) {
            if (reply.isValid())
                m_session.send(QDBusMessage::createMethodCall(QLatin1String(kPortal.name),
                    reply.value().path(), QLatin1String(kPortalRequest), QStringLiteral("Close")));
            return;
        }
        if (reply.isValid())
            m_portalRequest = reply.value().path();
        note(reply.isValid());
    });
}

void SleepGuard::delaySleep()
{
    ask(m_system, logindLock("sleep", m_why, "delay"),
        [this, asked = m_asked](const QDBusMessage& message) {
            const QDBusReply<QDBusUnixFileDescriptor> reply = message;
            if (asked == m_asked && reply.isValid())
                m_delay = reply.value();
        });
}

void SleepGuard::onPrepareForSleep(bool start)
{
    if (start && m_delay.isValid())
        emit aboutToSleep();
    else if (!start && m_state != State::Off)
        delaySleep(); // for the next time
}

void SleepGuard::letSleep()
{
    m_delay = {};
}

void SleepGuard::note(bool isHeld)
{
    --m_open;
    if (isHeld)
        setState(State::Held);
    else if (m_open == 0 && m_state == State::Asked)
        setState(State::Unavailable);
}

void SleepGuard::setState(State state)
{
    if (m_state == state)
        return;
    m_state = state;
    emit stateChanged(state);
}

} // namespace mr::ui
