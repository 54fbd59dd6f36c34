// A run on the desktop, over a bus of the test's own: notifications lead back into the window, and
// the machine stays awake as long as the run does, and no longer.

#include "bridge/desktop_presence.h"
#include "bridge/notifier.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"
#include "ui/support/fake_services.h"
#include "ui/support/private_bus.h"

#include <QDBusObjectPath>
#include <QDBusUnixFileDescriptor>
#include <QDateTime>
#include <QSignalSpy>
#include <QTest>
#include <QVariantMap>

#include <poll.h>
#include <unistd.h>

#include <array>

namespace mr::test::tst_desktop_presence {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

struct Message {
    uint replaces = 0;
    QString title;
    QString text;
    QStringList actions;
};

} // namespace

class FakeNotifications : public QObject
{
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.freedesktop.Notifications")

public:
    QList<Message> shown;

public slots:
    uint Notify(const QString&, uint replaces, const QString&, const QString& title,
        const QString& text, const QStringList& actions, const QVariantMap&, int)
    {
        shown.append({replaces, title, text, actions});
        return replaces != 0 ? replaces : 40U + static_cast<uint>(shown.size());
    }

signals:
    void ActionInvoked(uint id, const QString& action);
    void NotificationClosed(uint id, uint reason);
};

class FakeLogind : public QObject
{
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.freedesktop.login1.Manager")

public:
    struct Lock {
        QString what;
        QString mode;
        int end = -1; // our end of a pipe; the asker holds the other

        bool isHeld() const
        {
            pollfd state{end, POLLIN, 0};
            return poll(&state, 1, 0) == 0;
        }
    };
    QList<Lock> locks;

    ~FakeLogind() override
    {
        for (const Lock& lock : std::as_const(locks))
            close(lock.end);
    }

    const Lock* last(const QString& what) const
    {
        for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock) {
            if (lock->what == what)
                return &*lock;
        }
        return nullptr;
    }
    bool holds(const QString& what) const { return last(what) != nullptr && last(what)->isHeld(); }

public slots:
    QDBusUnixFileDescriptor Inhibit(
        const QString& what, const QString&, const QString&, const QString& mode)
    {
        std::array<int, 2> ends{};
        if (pipe(ends.data()) != 0)
            return {};
        locks.append({what, mode, ends[0]});
        QDBusUnixFileDescriptor given(ends[1]); // has a copy of its own
        close(ends[1]);
        return given;
    }

signals:
    void PrepareForSleep(bool start);
};

class FakeScreenSaver : public QObject
{
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.freedesktop.ScreenSaver")

public:
    QList<uint> given;
    QList<uint> back;

public slots:
    uint Inhibit(const QString&, const QString&)
    {
        given.append(7U + static_cast<uint>(given.size()));
        return given.last();
    }
    void UnInhibit(uint cookie) { back.append(cookie); }
};

class FakePortal : public QObject
{
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.freedesktop.portal.Inhibit")

public:
    QList<uint> flags;

public slots:
    QDBusObjectPath Inhibit(const QString&, uint what, const QVariantMap&)
    {
        flags.append(what);
        return QDBusObjectPath(QStringLiteral("/org/freedesktop/portal/desktop/request/1"));
    }
};

class TestDesktopPresence : public QObject
{
    Q_OBJECT

private slots:

    void init()
    {
        m_bus = std::make_unique<PrivateBus>();
        QVERIFY2(m_bus->isThere(), "dbus-daemon does not start: install the package of that name");
        m_run = std::make_shared<FakeRun>();
        m_controller = std::make_unique<SessionController>(fakeServices(m_run));
    }

    void cleanup()
    {
        if (m_run)
            m_run->finish();
        m_controller.reset();
        for (const char* name : {"desktop", "system", "session"})
            QDBusConnection::disconnectFromBus(QLatin1String(name));
        m_bus.reset();
    }

    void aFinishedRunIsAnnouncedAndItsActionOpensIt()
    {
        FakeNotifications desktop;
        offer("org.freedesktop.Notifications", "/org/freedesktop/Notifications", desktop);
        DesktopPresence presence(*m_controller, nullptr, buses());
        QSignalSpy opened(&presence, &DesktopPresence::openRequested);
        startRun(presence);

        m_run->finish();

        QTRY_COMPARE(desktop.shown.size(), 1);
        QCOMPARE(desktop.shown[0].title, QString("“Notes, second try” is done"));
        QVERIFY2(desktop.shown[0].text.contains("All 600 steps are done."),
            qPrintable(desktop.shown[0].text));
        QVERIFY(desktop.shown[0].actions.contains("Open"));
        emit desktop.ActionInvoked(99, "open"); // another program's
        emit desktop.ActionInvoked(41, "open");
        QTRY_COMPARE(opened.count(), 1);
        QCOMPARE(opened[0][0].toLongLong(), 7LL);
    }

    void aFailureGivesItsReasonAndIsNoMarkup()
    {
        FakeNotifications desktop;
        offer("org.freedesktop.Notifications", "/org/freedesktop/Notifications", desktop);
        m_run->endFailure = Status::error(ErrorKind::Io, "disk <a> & b");
        DesktopPresence presence(*m_controller, nullptr, buses());
        startRun(presence);

        m_run->finish();

        QTRY_COMPARE(desktop.shown.size(), 1);
        QCOMPARE(desktop.shown[0].title, QString("“Notes, second try” failed"));
        QCOMPARE(desktop.shown[0].text, QString("disk &lt;a&gt; &amp; b"));
    }

    void whatTheUserStoppedIsNotAnnounced()
    {
        FakeNotifications desktop;
        offer("org.freedesktop.Notifications", "/org/freedesktop/Notifications", desktop);
        DesktopPresence presence(*m_controller, nullptr, buses());
        QSignalSpy ended(m_controller.get(), &SessionController::runEnded);
        startRun(presence);

        m_controller->requestStop();

        QTRY_COMPARE(ended.count(), 1);
        presence.notifier()->show(0, "the next", {}); // would come after it
        QTRY_COMPARE(desktop.shown.size(), 1);
        QCOMPARE(desktop.shown[0].title, QString("the next"));
    }

    void aPausedRunCallsItsUserOnceAndLetsTheMachineSleep()
    {
        FakeNotifications desktop;
        FakeLogind logind;
        offer("org.freedesktop.Notifications", "/org/freedesktop/Notifications", desktop);
        offer("org.freedesktop.login1", "/org/freedesktop/login1", logind);
        DesktopPresence presence(*m_controller, nullptr, buses());
        startRun(presence);
        QTRY_VERIFY(logind.holds("idle"));

        presence.setSnapshot(demoPaused(412, 600, true));
        presence.setSnapshot(demoPaused(412, 600, true));

        QTRY_VERIFY(!logind.holds("idle"));
        QTRY_COMPARE(desktop.shown.size(), 1);
        QVERIFY(desktop.shown[0].title.contains("is paused"));
        presence.setSnapshot(demoSnapshot(413, 600)); // it found room
        QTRY_VERIFY(logind.holds("idle"));
        m_run->finish();
        QTRY_COMPARE(desktop.shown.size(), 2);
        QCOMPARE(desktop.shown[1].replaces, 41U); // the older one about this run
    }

    void theMachineIsKeptAwakeUntilTheRunEnds()
    {
        FakeLogind logind;
        FakeScreenSaver screen;
        offer("org.freedesktop.login1", "/org/freedesktop/login1", logind);
        offer("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver", screen);
        DesktopPresence presence(*m_controller, nullptr, buses());

        startRun(presence);

        QTRY_VERIFY(logind.holds("idle") && logind.holds("sleep"));
        QCOMPARE(logind.last("idle")->mode, QString("block"));
        QCOMPARE(logind.last("sleep")->mode, QString("delay")); // a request for sleep is granted
        QTRY_COMPARE(screen.given, QList<uint>{7});
        QTRY_COMPARE(presence.sleep()->state(), SleepGuard::State::Held); // its answers arrived
        m_run->finish();
        QTRY_VERIFY(!logind.holds("idle") && !logind.holds("sleep"));
        QTRY_COMPARE(screen.back, QList<uint>{7});
        QCOMPARE(presence.sleep()->state(), SleepGuard::State::Off);
    }

    void thePortalIsAskedWhereThereIsNoScreenSaver()
    {
        FakePortal portal;
        offer("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop", portal);
        SleepGuard guard(noBus(), session());

        guard.hold("why");

        QTRY_COMPARE(guard.state(), SleepGuard::State::Held);
        QCOMPARE(portal.flags, QList<uint>{8}); // idleness only
    }

    void anAnswerThatComesTooLateIsGivenBack()
    {
        FakeLogind logind;
        FakeScreenSaver screen;
        offer("org.freedesktop.login1", "/org/freedesktop/login1", logind);
        offer("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver", screen);
        SleepGuard guard(system(), session());

        guard.hold("why");
        guard.release();

        QTRY_COMPARE(screen.back, QList<uint>{7});
        QTRY_COMPARE(logind.locks.size(), 2);
        QTRY_VERIFY(!logind.holds("idle") && !logind.holds("sleep"));
        QCOMPARE(guard.state(), SleepGuard::State::Off);
    }

    void beforeASleepACheckpointIsWritten()
    {
        FakeLogind logind;
        offer("org.freedesktop.login1", "/org/freedesktop/login1", logind);
        DesktopPresence presence(*m_controller, nullptr, buses());
        startRun(presence);
        QTRY_VERIFY(logind.holds("idle") && logind.holds("sleep"));

        emit logind.PrepareForSleep(true);

        QTRY_COMPARE(savesAsked(), 1);
        presence.setSnapshot(demoSnapshot(412, 600)); // nothing was saved yet
        QVERIFY(logind.holds("sleep"));
        auto saved = std::make_shared<RunSnapshot>(*demoSnapshot(413, 600));
        saved->checkpoints.push_back(
            {413, "/c", 1, "complete", QDateTime::currentMSecsSinceEpoch() + 1000, 1});
        presence.setSnapshot(saved);
        QTRY_VERIFY(!logind.holds("sleep"));
        QVERIFY(logind.holds("idle"));
        emit logind.PrepareForSleep(false); // it woke up
        QTRY_VERIFY(logind.holds("sleep"));
    }

    void withoutABusNothingHappensAndNothingBreaks()
    {
        DesktopPresence presence(*m_controller, nullptr, {noBus(), noBus()});
        QSignalSpy ended(m_controller.get(), &SessionController::runEnded);

        startRun(presence);

        QTRY_COMPARE(presence.sleep()->state(), SleepGuard::State::Unavailable);
        m_run->finish();
        QTRY_COMPARE(ended.count(), 1);
        QCOMPARE(presence.sleep()->state(), SleepGuard::State::Off);
    }

    void withoutServicesNothingHappensAndNothingBreaks()
    {
        DesktopPresence presence(*m_controller, nullptr, buses());
        QSignalSpy ended(m_controller.get(), &SessionController::runEnded);

        startRun(presence);

        QTRY_COMPARE(presence.sleep()->state(), SleepGuard::State::Unavailable);
        m_run->finish();
        QTRY_COMPARE(ended.count(), 1);
    }

private:
    QDBusConnection system() const { return m_bus->connection("system"); }
    QDBusConnection session() const { return m_bus->connection("session"); }
    DesktopBuses buses() const { return {system(), session()}; }

    void offer(const char* service, const char* path, QObject& object)
    {
        QDBusConnection desktop = m_bus->connection("desktop");
        QVERIFY(desktop.registerObject(QLatin1String(path), &object,
            QDBusConnection::ExportAllSlots | QDBusConnection::ExportAllSignals));
        QVERIFY(desktop.registerService(QLatin1String(service)));
    }

    void startRun(DesktopPresence& presence)
    {
        QSignalSpy started(m_controller.get(), &SessionController::runStarted);
        m_controller->open({});
        QTRY_COMPARE(started.count(), 1);
        presence.setSnapshot(demoSnapshot(412, 600));
    }

    int savesAsked() const
    {
        const std::scoped_lock lock(m_run->mutex);
        return m_run->savesAsked;
    }

    std::unique_ptr<PrivateBus> m_bus;
    std::shared_ptr<FakeRun> m_run;
    std::unique_ptr<SessionController> m_controller;
};

MR_TEST_WITH_WINDOWS(TestDesktopPresence)

} // namespace mr::test::tst_desktop_presence

#include "tst_desktop_presence.moc"
