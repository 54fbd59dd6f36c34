// Texts that were read in the wrong encoding are told from texts that only look odd.

#include "core/checks/lost_characters.h"
#include "support/test_room.h"

namespace mr::test::tst_lost_characters {

class TstLostCharacters : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void signsAreFound_data();
    void signsAreFound();
};

void TstLostCharacters::signsAreFound_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<bool>("isLost");

    QTest::newRow("replacement") << QByteArray("caf\xEF\xBF\xBD") << true;
    QTest::newRow("é as Windows-1252") << QByteArray("cafÃ©") << true;
    QTest::newRow("ß as Windows-1252") << QByteArray("StraÃŸe") << true;
    QTest::newRow("ö as Latin-1") << QByteArray("schÃ¶n") << true;
    QTest::newRow("apostrophe") << QByteArray("donâ€™t") << true;
    QTest::newRow("dash") << QByteArray("1â€“2") << true;
    QTest::newRow("dash as Latin-1") << QByteArray("1â\u20AC\u0093"
                                                   "2")
                                     << true;
    QTest::newRow("no-break space") << QByteArray("10Â\u00A0km") << true;
    QTest::newRow("at the end") << QByteArray("\xC3\x83") << false;

    QTest::newRow("ASCII") << QByteArray("plain") << false;
    QTest::newRow("French") << QByteArray("Où êtes-vous, Âme ? « Ça »") << false;
    QTest::newRow("Portuguese in capitals") << QByteArray("“AMANHÔ, «NÃ»") << false;
    QTest::newRow("Vietnamese") << QByteArray("Ước mơ â€ ấy") << false;
    QTest::newRow("Japanese") << QByteArray("水車がまわる") << false;
    QTest::newRow("not UTF-8") << QByteArray("\xC3(") << false;
    QTest::newRow("empty") << QByteArray() << false;
}

void TstLostCharacters::signsAreFound()
{
    QFETCH(QByteArray, text);
    QFETCH(bool, isLost);
    QCOMPARE(!lostCharacters(text.toStdString()).empty(), isLost);
}

MR_TEST(TstLostCharacters)

} // namespace mr::test::tst_lost_characters

#include "tst_lost_characters.moc"
