// The window as a screen reader hears it: over AT-SPI, on a bus of the test's own. A second process
// shows the window on an X server without a screen; the test plays the registry.

#include "language.h"
#include "main_window.h"
#include "pages/history_page.h"
#include "pages/home_page.h"
#include "pages/live_page.h"
#include "support/test_room.h"
#include "theme.h"
#include "ui/support/demo_rows.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "ui/support/private_bus.h"

#include <QApplication>
#include <QDBusArgument>
#include <QDBusContext>
#include <QDBusMessage>
#include <QDBusMetaType>
#include <QDBusObjectPath>
#include <QDBusReply>
#include <QDBusVariant>
#include <QProcess>
#include <QSocketNotifier>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <unistd.h>

#include <cstring>

namespace mr::test::tst_screen_reader {

using namespace mr::ui;
using namespace mr::ui::test;

// An object of AT-SPI: "(so)".
struct Node {
    QString service;
    QDBusObjectPath path;
};

QDBusArgument& operator<<(QDBusArgument& argument, const Node& node)
{
    argument.beginStructure();
    argument << node.service << node.path;
    argument.endStructure();
    return argument;
}

const QDBusArgument& operator>>(const QDBusArgument& argument, Node& node)
{
    argument.beginStructure();
    argument >> node.service >> node.path;
    argument.endStructure();
    return argument;
}

namespace {

constexpr auto kChild = "shows-the-window";
constexpr auto kAccessible = "org.a11y.atspi.Accessible";
constexpr auto kAction = "org.a11y.atspi.Action";
constexpr auto kRegistry = "org.a11y.atspi.Registry";
constexpr auto kRoot = "/org/a11y/atspi/accessible/root";
// Bits of a state, from atspi-constants.h.
constexpr unsigned kFocusable = 11;
constexpr unsigned kSelected = 23;
constexpr unsigned kShowing = 25;

// The program whose window is looked at. Ends with its standard input.
int showWindow(int argc, char** argv)
{
    const QTemporaryDir folder;
    qputenv("XDG_DATA_HOME", folder.path().toUtf8());
    const QApplication application(argc, argv);
    keepSettingsIn(folder.path());
    Theme theme;
    Language language;
    MainWindow window(fakeServices(std::make_shared<FakeRun>(), demoRuns()), theme, language);
    window.resize(1280, 900);
    window.show();
    window.home()->setRuns(demoRuns());
    window.live()->showSnapshot(demoSnapshot(412, 600));
    window.history()->setRuns(demoRuns());
    const QSocketNotifier input(STDIN_FILENO, QSocketNotifier::Read);
    QObject::connect(&input, &QSocketNotifier::activated, &application, &QCoreApplication::quit);
    return QApplication::exec();
}

int otherMain(int argc, char** argv)
{
    return argc > 1 && std::strcmp(argv[1], kChild) == 0 ? showWindow(argc, argv) : -1;
}

} // namespace

} // namespace mr::test::tst_screen_reader

Q_DECLARE_METATYPE(mr::test::tst_screen_reader::Node)

namespace mr::test::tst_screen_reader {

// Programs embed themselves here when they begin.
class FakeRegistry : public QObject, protected QDBusContext
{
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.a11y.atspi.Socket")

public:
    QString program; // its name on the bus

public slots:
    mr::test::tst_screen_reader::Node Embed(const mr::test::tst_screen_reader::Node&)
    {
        program = message().service();
        return {kRegistry, QDBusObjectPath(kRoot)};
    }
};

// Programs ask it for the bus of accessibility, which is the same here.
class FakeBus : public QObject
{
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.a11y.Bus")

public:
    QString address;

public slots:
    QString GetAddress() { return address; }
};

class TestScreenReader : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        qDBusRegisterMetaType<Node>();
        qDBusRegisterMetaType<QList<Node>>();
        qDBusRegisterMetaType<QList<unsigned>>();
        if (QStandardPaths::findExecutable("Xvfb").isEmpty() || !m_bus.isThere())
            QSKIP("there is no Xvfb, or no dbus-daemon");
        m_screen.start(
            "Xvfb", {"-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"});
        QVERIFY(m_screen.waitForStarted() && m_screen.waitForReadyRead());
        QDBusConnection bus = m_bus.connection("reader");
        QVERIFY(bus.registerObject(kRoot, &m_registry, QDBusConnection::ExportAllSlots));
        QVERIFY(bus.registerService(kRegistry));
        m_a11yBus.address = m_bus.address();
        QVERIFY(bus.registerObject("/org/a11y/bus", &m_a11yBus, QDBusConnection::ExportAllSlots));
        QVERIFY(bus.registerService("org.a11y.Bus"));
        startWindow(':' + m_screen.readLine().trimmed());
        QTRY_VERIFY_WITH_TIMEOUT(!m_registry.program.isEmpty(), 60'000);
        QTRY_VERIFY_WITH_TIMEOUT(find("page tab", "Home").service.size() > 0, 60'000);
    }

    void cleanupTestCase()
    {
        for (QProcess* process : {&m_window, &m_screen}) {
            process->kill();
            process->waitForFinished();
        }
    }

    void everythingThatTakesTheFocusHasANameAndARole()
    {
        int focusable = 0;
        QStringList bad;
        for (const Node& node : all()) {
            if (!has(node, kFocusable) || !has(node, kShowing))
                continue;
            ++focusable;
            const QString role = roleOf(node);
            if (nameOf(node).trimmed().isEmpty() || role.isEmpty() || role == "unknown" ||
                role == "invalid" || role == "filler")
                bad << QString("%1 '%2' %3").arg(role, nameOf(node), node.path.path());
        }

        QVERIFY2(bad.isEmpty(), qPrintable(bad.join('\n')));
        QVERIFY2(focusable > 12, qPrintable(QString::number(focusable)));
    }

    void aPageIsOpenedByItsTab()
    {
        const Node live = find("page tab", "Live");
        QVERIFY(!live.service.isEmpty());
        QVERIFY(!has(live, kSelected));

        QVERIFY(press(live));

        QTRY_VERIFY(has(live, kSelected));
        QVERIFY(!has(find("page tab", "Home"), kSelected));
    }

    void aChartIsSummedUpInWords()
    {
        QVERIFY(press(find("page tab", "Live")));

        const Node loss = find("chart", "Loss");

        QVERIFY(!loss.service.isEmpty());
        QTRY_VERIFY(has(loss, kShowing));
        const QString words = property(loss, "Description").toString();
        QVERIFY2(words.contains("412"), qPrintable(words));
    }

private:
    void startWindow(const QString& display)
    {
        auto environment = QProcessEnvironment::systemEnvironment();
        environment.insert("QT_QPA_PLATFORM", "xcb");
        environment.insert("DISPLAY", display);
        environment.insert("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1");
        environment.insert("DBUS_SESSION_BUS_ADDRESS", m_bus.address());
        environment.insert("LC_ALL", "C.UTF-8");
        m_window.setProcessEnvironment(environment);
        m_window.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        m_window.start(QCoreApplication::applicationFilePath(), {"screen_reader", kChild});
        QVERIFY(m_window.waitForStarted());
    }

    QDBusMessage call(const Node& node, const char* interface, const char* method,
        const QVariantList& arguments = {}) const
    {
        QDBusMessage question =
            QDBusMessage::createMethodCall(node.service, node.path.path(), interface, method);
        question.setArguments(arguments);
        return m_bus.connection("reader").call(question);
    }

    QVariant property(const Node& node, const char* name) const
    {
        const QDBusReply<QDBusVariant> reply =
            call(node, "org.freedesktop.DBus.Properties", "Get", {kAccessible, name});
        return reply.isValid() ? reply.value().variant() : QVariant();
    }

    QString nameOf(const Node& node) const { return property(node, "Name").toString(); }

    QString roleOf(const Node& node) const
    {
        const QDBusReply<QString> reply = call(node, kAccessible, "GetRoleName");
        return reply.value();
    }

    bool has(const Node& node, unsigned state) const
    {
        const QDBusReply<QList<unsigned>> reply = call(node, kAccessible, "GetState");
        const QList<unsigned> words = reply.value();
        constexpr unsigned kBits = 32;
        return words.size() > state / kBits && (words[state / kBits] >> state % kBits & 1U) != 0;
    }

    // All that the program shows, but the cells of tables.
    QList<Node> all() const
    {
        QList<Node> found{{m_registry.program, QDBusObjectPath(kRoot)}};
        for (qsizetype i = 0; i < found.size(); ++i) {
            const QString role = roleOf(found[i]);
            if (role == "table" || role == "list" || role == "tree")
                continue;
            const QDBusReply<QList<Node>> children = call(found[i], kAccessible, "GetChildren");
            found += children.value();
        }
        return found;
    }

    // The first whose name begins so; an empty node if there is none.
    Node find(const QString& role, const QString& name) const
    {
        for (const Node& node : all())
            if (roleOf(node) == role && nameOf(node).startsWith(name))
                return node;
        return {};
    }

    bool press(const Node& node) const
    {
        const QDBusReply<QDBusVariant> count =
            call(node, "org.freedesktop.DBus.Properties", "Get", {kAction, "NActions"});
        for (int i = 0; i < count.value().variant().toInt(); ++i) {
            const QDBusReply<QString> name = call(node, kAction, "GetName", {i});
            const bool isPress = name.value() == "Press";
            if (isPress)
                return QDBusReply<bool>(call(node, kAction, "DoAction", {i})).value();
        }
        return false;
    }

    PrivateBus m_bus;
    FakeRegistry m_registry;
    FakeBus m_a11yBus;
    QProcess m_screen;
    QProcess m_window;
};

MR_TEST_OR_MAIN(TestScreenReader, Widgets, otherMain)

} // namespace mr::test::tst_screen_reader

#include "tst_screen_reader.moc"
