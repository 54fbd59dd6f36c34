// The look follows what the desktop prefers, over a bus of the test's own.

#include "support/test_room.h"
#include "text/theme_colors.h"
#include "theme.h"
#include "ui/support/private_bus.h"

#include <QApplication>
#include <QDBusMessage>
#include <QDBusVariant>
#include <QStyle>
#include <QTest>

namespace mr::test::tst_theme {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

constexpr auto kPortal = "org.freedesktop.portal.Desktop";
constexpr auto kPath = "/org/freedesktop/portal/desktop";
constexpr auto kAppearance = "org.freedesktop.appearance";
constexpr auto kGnome = "org.gnome.desktop.interface";

int animationMs()
{
    return QApplication::style()->styleHint(QStyle::SH_Widget_Animation_Duration);
}

bool showsDark()
{
    return isDark(QApplication::palette());
}

} // namespace

// Answers as portals do: the value is wrapped twice.
class FakeSettings : public QObject
{
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.freedesktop.portal.Settings")

public:
    QMap<QString, QVariant> values;
    QStringList asked;

public slots:
    QDBusVariant Read(const QString& space, const QString& key)
    {
        asked << space + '/' + key;
        return QDBusVariant(QVariant::fromValue(QDBusVariant(values.value(asked.last()))));
    }

signals:
    void SettingChanged(const QString& space, const QString& key, const QDBusVariant& value);
};

class TestTheme : public QObject
{
    Q_OBJECT

private slots:

    void init()
    {
        if (!m_bus.isThere())
            QSKIP("there is no dbus-daemon");
        m_portal = std::make_unique<FakeSettings>();
        for (const char* key : {"color-scheme", "reduced-motion"})
            m_portal->values[QString("%1/%2").arg(kAppearance, key)] = 0U;
        m_portal->values[QString("%1/enable-animations").arg(kGnome)] = true;
        QDBusConnection there = m_bus.connection("portal");
        QVERIFY(there.registerObject(kPath, m_portal.get(),
            QDBusConnection::ExportAllSlots | QDBusConnection::ExportAllSignals));
        QVERIFY(there.registerService(kPortal));
    }

    void cleanup()
    {
        if (!m_bus.isThere())
            return;
        m_bus.connection("portal").unregisterObject(kPath);
        m_bus.connection("portal").unregisterService(kPortal);
    }

    void whatTheDesktopPrefersIsFollowedFromTheStartAndLater()
    {
        m_portal->values[QString("%1/color-scheme").arg(kAppearance)] = 1U;

        const Theme theme(m_bus.connection("window"));

        QTRY_VERIFY(showsDark());
        emit m_portal->SettingChanged(kAppearance, "color-scheme", QDBusVariant(2U));
        QTRY_VERIFY(!showsDark());
    }

    void nothingMovesWhereTheDesktopSaysSo_data()
    {
        QTest::addColumn<QString>("space");
        QTest::addColumn<QString>("key");
        QTest::addColumn<QVariant>("off");
        QTest::addColumn<QVariant>("on");
        QTest::newRow("freedesktop")
            << QString(kAppearance) << "reduced-motion" << QVariant(1U) << QVariant(0U);
        QTest::newRow("GNOME") << QString(kGnome) << "enable-animations" << QVariant(false)
                               << QVariant(true);
    }

    void nothingMovesWhereTheDesktopSaysSo()
    {
        QFETCH(const QString, space);
        QFETCH(const QString, key);
        QFETCH(const QVariant, off);
        QFETCH(const QVariant, on);
        m_portal->values[space + '/' + key] = off;

        const Theme theme(m_bus.connection("window"));

        QTRY_VERIFY(m_portal->asked.size() >= 3);
        QTRY_COMPARE(animationMs(), 0);
        emit m_portal->SettingChanged(space, key, QDBusVariant(on));
        QTRY_VERIFY(animationMs() > 0);
        emit m_portal->SettingChanged(space, key, QDBusVariant(off));
        QTRY_COMPARE(animationMs(), 0);
    }

private:
    PrivateBus m_bus;
    std::unique_ptr<FakeSettings> m_portal;
};

MR_TEST_WITH_WINDOWS(TestTheme)

} // namespace mr::test::tst_theme

#include "tst_theme.moc"
