// SleepGuard: keeps the machine from falling asleep by itself while a run goes on.
//
// Idleness is held off with logind and with the session (its screen saver, else the portal). A
// sleep that somebody asks for is never blocked, only delayed, so that a checkpoint can be written
// before it. Where nothing answers, nothing is held off and nothing breaks. A program that dies
// holds off nothing: the system closes its descriptors and its place on the bus.
//
// Threads    UI thread; calls to the bus are not waited for.
// Ownership  Keeps copies of the connections, and the descriptors until release().

#pragma once

#include <QDBusConnection>
#include <QDBusUnixFileDescriptor>
#include <QObject>
#include <QString>

#include <functional>

class QDBusMessage;

namespace mr::ui {

class SleepGuard final : public QObject
{
    Q_OBJECT

public:
    // Asked: no answer yet. Unavailable: nobody could.
    enum class State { Off, Asked, Held, Unavailable };
    Q_ENUM(State)

    SleepGuard(
        const QDBusConnection& system, const QDBusConnection& session, QObject* parent = nullptr);
    ~SleepGuard() override;

    State state() const { return m_state; }
    // `why`: the reason that the system shows for staying awake.
    void hold(const QString& why);
    void release();
    // After aboutToSleep(): the checkpoint is saved.
    void letSleep();

signals:
    void stateChanged(mr::ui::SleepGuard::State state);
    // The machine will sleep as soon as letSleep() was called, or in some seconds anyway.
    void aboutToSleep();

private slots:
    void onPrepareForSleep(bool start);

private:
    using Answered = std::function<void(const QDBusMessage& reply)>;

    void ask(QDBusConnection bus, const QDBusMessage& call, Answered answered);
    void holdIdle();
    void holdScreen();
    void holdPortal();
    void delaySleep();
    void note(bool isHeld); // answer of logind or of the session to the hold on idleness
    void setState(State state);

    QDBusConnection m_system;
    QDBusConnection m_session;
    State m_state = State::Off;
    QString m_why;
    int m_asked = 0; // which hold() an answer belongs to
    int m_open = 0;  // questions without an answer
    QDBusUnixFileDescriptor m_idle;
    QDBusUnixFileDescriptor m_delay;
    uint m_screenCookie = 0;
    bool m_hasScreen = false;
    QString m_portalRequest;
};

} // namespace mr::ui
