// ByteSpinBox: amounts of memory from kilobytes to terabytes, as people write them.

#include "support/test_room.h"
#include "widgets/byte_spin_box.h"

#include <QLocale>
#include <QTest>

namespace mr::test::tst_byte_spin_box {

using namespace mr::ui;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

} // namespace

class TestByteSpinBox : public QObject
{
    Q_OBJECT

private slots:
    void amountsAreShownInTheirOwnUnit()
    {
        ByteSpinBox box;
        box.setLocale(QLocale::c());
        box.setSpecialValueText(QStringLiteral("Automatic"));
        QCOMPARE(box.text(), QStringLiteral("Automatic"));
        const auto shown = [&](std::uint64_t bytes) {
            box.setBytes(bytes);
            return box.text();
        };

        QCOMPARE(shown(6 * kGiB), QStringLiteral("6 GiB"));
        QCOMPARE(shown(kGiB + kGiB / 2), QStringLiteral("1.5 GiB"));
        QCOMPARE(shown(6459228), QStringLiteral("6.16 MiB"));
        QCOMPARE(shown(512 * 1024), QStringLiteral("512 KiB"));
        QCOMPARE(shown(2048 * kGiB), QStringLiteral("2 TiB"));
    }

    void bytesComeBackAsTheyWereSet()
    {
        ByteSpinBox box;
        for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{6459228},
                 std::uint64_t{19'398'345}, 6 * kGiB, 23 * kGiB + 7}) {
            box.setBytes(bytes);
            QCOMPARE(box.bytes(), bytes);
        }
    }

    void whatIsTypedIsRead_data()
    {
        QTest::addColumn<QString>("typed");
        QTest::addColumn<quint64>("bytes");
        QTest::newRow("MiB") << "6.5 MiB" << quint64{6 * kMiB + kMiB / 2};
        QTest::newRow("no unit") << "8" << quint64{8 * kGiB};
        QTest::newRow("a letter") << "500m" << quint64{500 * kMiB};
        QTest::newRow("without i") << "2GB" << quint64{2 * kGiB};
        QTest::newRow("spaces") << "  3   gib " << quint64{3 * kGiB};
        QTest::newRow("KiB") << "1024 KiB" << quint64{kMiB};
    }

    void whatIsTypedIsRead()
    {
        QFETCH(const QString, typed);
        QFETCH(const quint64, bytes);
        ByteSpinBox box;
        box.setLocale(QLocale::c());
        box.selectAll();
        QTest::keyClicks(&box, typed);
        QTest::keyClick(&box, Qt::Key_Return);

        QCOMPARE(quint64{box.bytes()}, bytes);
    }

    void theLanguagesOwnCommaIsRead()
    {
        ByteSpinBox box;
        box.setLocale(QLocale(QLocale::German));
        box.selectAll();
        QTest::keyClicks(&box, QStringLiteral("1,5 GiB"));
        QTest::keyClick(&box, Qt::Key_Return);

        QCOMPARE(box.bytes(), kGiB + kGiB / 2);
        QCOMPARE(box.text(), QStringLiteral("1,5 GiB"));
    }

    void whatIsNoAmountCannotBeTyped()
    {
        ByteSpinBox box;
        box.setLocale(QLocale::c());
        int position = 0;
        for (const char* text : {"six", "6 pounds", "-1 GiB", "9999999 TiB"}) {
            QString typed = QString::fromLatin1(text);
            QCOMPARE(box.validate(typed, position), QValidator::Invalid);
        }
        QString empty;
        QCOMPARE(box.validate(empty, position), QValidator::Intermediate);
        QString onItsWay = QStringLiteral("6 Mi");
        QCOMPARE(box.validate(onItsWay, position), QValidator::Acceptable);
    }

    void stepsFitTheAmount()
    {
        ByteSpinBox box;
        box.setBytes(8 * kGiB);
        box.stepBy(1);
        QCOMPARE(box.bytes(), 8 * kGiB + kGiB / 2);
        box.setBytes(16 * kMiB);
        box.stepBy(-1);
        QCOMPARE(box.bytes(), 12 * kMiB);
        box.setBytes(0);
        box.stepBy(1);
        QCOMPARE(box.bytes(), kGiB / 2);
    }
};

MR_TEST_WITH_WINDOWS(TestByteSpinBox)

} // namespace mr::test::tst_byte_spin_box

#include "tst_byte_spin_box.moc"
