// The decoder: every code point there and back, and broken bytes.

#include "core/base/utf8.h"
#include "support/test_room.h"

#include <QTest>

#include <string>

namespace mr::test::tst_utf8 {

class TestUtf8 : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyCodePointComesBack()
    {
        for (std::int32_t code = 0; code <= 0x10FFFF; ++code) {
            std::string text;
            appendCharacter(code, text);
            const bool isSurrogate = code >= 0xD800 && code <= 0xDFFF;
            const Character c = characterAt(text, 0);
            if (c.code != (isSurrogate ? -1 : code) || c.bytes != (isSurrogate ? 1 : text.size()) ||
                characterBytes(static_cast<unsigned char>(text[0])) != text.size())
                QFAIL(qPrintable(QString::number(code, 16)));
            if (!isSurrogate && (validBytes(text, 0) != text.size() || unfinishedBytes(text) != 0 ||
                                    characterBefore(text, text.size()).code != code))
                QFAIL(qPrintable(QString::number(code, 16)));
        }
    }

    // QString's decoder writes U+FFFD for invalid UTF-8.
    void allPairsOfBytesAreJudgedAsByQt()
    {
        for (int first = 0; first < 256; ++first)
            for (int second = 0; second < 256; ++second) {
                const std::string text{static_cast<char>(first), static_cast<char>(second)};
                const bool isValid =
                    !QString::fromStdString(text).contains(QChar(QChar::ReplacementCharacter));
                QCOMPARE(validBytes(text, 0) == 2, isValid);
            }
    }

    void brokenBytesAreNoCharacter_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addRow("a continuation alone") << QByteArray("\x80");
        QTest::addRow("longer than needed, 2") << QByteArray("\xC0\xAF");
        QTest::addRow("longer than needed, 3") << QByteArray("\xE0\x80\xAF");
        QTest::addRow("longer than needed, 4") << QByteArray("\xF0\x80\x80\xAF");
        QTest::addRow("a surrogate") << QByteArray("\xED\xA0\x80");
        QTest::addRow("beyond Unicode") << QByteArray("\xF4\x90\x80\x80");
        QTest::addRow("five bytes") << QByteArray("\xF8\x88\x80\x80\x80");
        QTest::addRow("cut short") << QByteArray("\xE2\x82");
        QTest::addRow("cut by a letter") << QByteArray("\xE2\x82x");
    }

    void brokenBytesAreNoCharacter()
    {
        QFETCH(const QByteArray, bytes);
        const Character c = characterAt(bytes.toStdString(), 0);
        QCOMPARE(c.code, -1);
        QCOMPARE(c.bytes, std::size_t{1});
        QCOMPARE(validBytes(bytes.toStdString(), 0), std::size_t{0});
    }

    void theEndOfATextIsNoCharacter()
    {
        QCOMPARE(characterAt("", 0).bytes, std::size_t{0});
        QCOMPARE(characterAt("a", 1).bytes, std::size_t{0});
        QCOMPARE(characterBefore("a", 0).bytes, std::size_t{0});
    }

    void textsAreCutBetweenCharacters()
    {
        const std::string text = "a\xE2\x82\xAC"
                                 "b"; // a euro sign between two letters
        QCOMPARE(firstBytes(text, 1), std::string_view("a"));
        QCOMPARE(firstBytes(text, 2), std::string_view("a"));
        QCOMPARE(firstBytes(text, 3), std::string_view("a"));
        QCOMPARE(firstBytes(text, 4), std::string_view(text).substr(0, 4));
        QCOMPARE(firstBytes(text, 9), std::string_view(text));
        QCOMPARE(unfinishedBytes(std::string_view(text).substr(0, 2)), std::size_t{1});
        QCOMPARE(unfinishedBytes(std::string_view(text).substr(0, 3)), std::size_t{2});
        QCOMPARE(unfinishedBytes(std::string_view(text).substr(0, 4)), std::size_t{0});
    }
};

MR_TEST(TestUtf8)

} // namespace mr::test::tst_utf8

#include "tst_utf8.moc"
