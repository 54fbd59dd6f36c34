// A message bus of the test's own, so that no test talks to the desktop it runs on.
//
// Threads    The test's.
// Ownership  Owns the daemon; its connections end with it.

#pragma once

#include <QDBusConnection>
#include <QProcess>
#include <QString>

namespace mr::ui::test {

class PrivateBus
{
public:
    PrivateBus()
    {
        m_daemon.start(
            QStringLiteral("dbus-daemon"), {QStringLiteral("--session"), QStringLiteral("--nofork"),
                                               QStringLiteral("--print-address")});
        if (m_daemon.waitForStarted() && m_daemon.waitForReadyRead())
            m_address = QString::fromUtf8(m_daemon.readLine()).trimmed();
    }

    ~PrivateBus()
    {
        m_daemon.kill();
        m_daemon.waitForFinished();
    }

    PrivateBus(const PrivateBus&) = delete;
    PrivateBus& operator=(const PrivateBus&) = delete;

    const QString& address() const { return m_address; }
    // False where there is no dbus-daemon.
    bool isThere() const { return !m_address.isEmpty(); }
    QDBusConnection connection(const QString& name) const
    {
        return QDBusConnection::connectToBus(m_address, name);
    }

private:
    QProcess m_daemon;
    QString m_address;
};

// A bus that nobody can reach.
inline QDBusConnection noBus()
{
    return QDBusConnection(QStringLiteral("a bus that is not there"));
}

} // namespace mr::ui::test
