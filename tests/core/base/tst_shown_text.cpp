// Foreign names in messages, and texts that must not command a terminal.

#include "core/base/shown_text.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_shown_text {

class TestShownText : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aNameIsQuotedAndNotLongerThanALine()
    {
        QCOMPARE(shownName(""), std::string("\"\""));
        QCOMPARE(shownName("lm_head.weight"), std::string("\"lm_head.weight\""));
        QCOMPARE(shownName(std::string(60, 'a')), "\"" + std::string(60, 'a') + "\"");
        QCOMPARE(shownName(std::string(61, 'a')), "\"" + std::string(60, 'a') + "...\"");
    }

    void aNameIsCutBetweenCharacters()
    {
        const std::string name = std::string(59, 'a') + "\xE6\x97\xA5\xE6\x9C\xAC";

        QCOMPARE(shownName(name), "\"" + std::string(59, 'a') + "...\"");
    }

    void textOfLettersIsPrintedAsItIs()
    {
        for (const char* text : {"", "plain text, 1.5 %",
                 "Gr\xC3\xBC\xC3\x9F"
                 "e",
                 "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", "\xF0\x9F\x9A\x80"})
            QCOMPARE(terminalText(text), std::string(text));
    }

    void whatCommandsATerminalIsSpelledOut_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("shown");
        QTest::newRow("title") << QByteArray("\x1b]0;owned\x07")
                               << QByteArray("\\x1b]0;owned\\x07");
        QTest::newRow("another line") << QByteArray("a\n  2  done") << QByteArray("a\\n  2  done");
        QTest::newRow("over the line") << QByteArray("a\rb\tc") << QByteArray("a\\x0db\\tc");
        QTest::newRow("rubbed out") << QByteArray("a\x7f") << QByteArray("a\\x7f");
        QTest::newRow("8-bit escape") << QByteArray("\xC2\x9B"
                                                    "2J")
                                      << QByteArray("\\u009b2J");
        QTest::newRow("8-bit escape, bare") << QByteArray("\x9B"
                                                          "2J")
                                            << QByteArray("\\x9b2J");
        QTest::newRow("turned round") << QByteArray("\xE2\x80\xAE"
                                                    "a")
                                      << QByteArray("\\u202ea");
        QTest::newRow("end of a line") << QByteArray("\xE2\x80\xA8") << QByteArray("\\u2028");
        QTest::newRow("cut character") << QByteArray("\xE6\x97") << QByteArray("\\xe6\\x97");
        QTest::newRow("too long a form") << QByteArray("\xC0\x9B") << QByteArray("\\xc0\\x9b");
        QTest::newRow("half of a pair")
            << QByteArray("\xED\xA0\x80") << QByteArray("\\xed\\xa0\\x80");
        QTest::newRow("beyond Unicode")
            << QByteArray("\xF4\x90\x80\x80") << QByteArray("\\xf4\\x90\\x80\\x80");
    }

    void whatCommandsATerminalIsSpelledOut()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, shown);

        QCOMPARE(terminalText(text.toStdString()), shown.toStdString());
    }
};

MR_TEST(TestShownText)

} // namespace mr::test::tst_shown_text

#include "tst_shown_text.moc"
