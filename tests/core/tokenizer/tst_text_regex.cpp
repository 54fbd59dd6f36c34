// Regular expressions of tokenizer.json: differences between Oniguruma and PCRE2, and limits.

#include "core/tokenizer/text_regex.h"
#include "support/test_room.h"

#include <QtTest>

#include <vector>

namespace mr::test::tst_text_regex {

namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text)
{
    Result<TextRegex> regex = TextRegex::compile(pattern);
    if (!regex.ok())
        qFatal("%s", regex.status().message().c_str());
    RegexMatcher matcher(regex.value());
    std::vector<std::string> out;
    TextRange found;
    RegexMatcher::Cursor at;
    while (true) {
        Result<bool> more = matcher.next(text, at, found);
        if (!more.ok())
            qFatal("%s", more.status().message().c_str());
        if (!more.value())
            break;
        out.push_back(text.substr(found.begin, found.end - found.begin));
    }
    return out;
}

using Texts = std::vector<std::string>;

} // namespace

class TstTextRegex : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void whiteSpaceIsUnicodes()
    {
        const std::string separator = "\xE1\xA0\x8E"; // U+180E, white space to PCRE2 alone
        QCOMPARE(matches(R"(\s+)", "a \t\xE3\x80\x80"
                                   "b" +
                                       separator),
            Texts{" \t\xE3\x80\x80"});
        QCOMPARE(matches(R"([^\s]+)", separator + " b"), (Texts{separator, "b"}));
        QCOMPARE(matches(R"([\S]+)", separator + " b"), (Texts{separator, "b"}));
        QCOMPARE(matches(R"(\S+)", separator + "\xC2\x85"
                                               "b"),
            (Texts{separator, "b"}));
    }

    void wordsHoldMarks()
    {
        QCOMPARE(
            matches(R"(\w+)", "e\xCC\x81_1 \xE2\x92\xB6-"), (Texts{"e\xCC\x81_1", "\xE2\x92\xB6"}));
        QCOMPARE(matches(R"(\W+)", "e\xCC\x81!"), Texts{"!"});
    }

    void publishedPatternsCutAsMeant()
    {
        const char* llama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
        QCOMPARE(matches(llama3, "DON'T 12345  x!\n\n y"),
            (Texts{"DON", "'T", " ", "123", "45", " ", " x", "!\n\n", " y"}));
    }

    void scriptsAreScripts()
    {
        // U+3001, a comma of several scripts, has none itself.
        QCOMPARE(matches(R"([\p{Han}]+)", "\xE6\xB0\xB4\xE3\x80\x81\xE8\xBB\x8A"),
            (Texts{"\xE6\xB0\xB4", "\xE8\xBB\x8A"}));
        QCOMPARE(matches(R"(\p{^Han}+)", "a\xE6\xB0\xB4"), Texts{"a"});
    }

    void classesHoldClasses()
    {
        QCOMPARE(matches("[a[bc]d]+", "xabcdx"), Texts{"abcd"});
        QCOMPARE(matches("[a[^b-z]]+", "zaA1bz"), Texts{"aA1"});
        QCOMPARE(matches("[^a[bc]]+", "abcxyc"), Texts{"xy"});
        QCOMPARE(matches("[^a[^b-d]]+", "abcdxa"), Texts{"bcd"});
        QCOMPARE(matches("[a-d&&[^b]&&[^d]]+", "abcda"), (Texts{"a", "c", "a"}));
        QCOMPARE(matches("[^a-d&&[^b]]+", "abxcd"), Texts{"bx"});
        QCOMPARE(matches("[[a]-z]+", "abz-"), (Texts{"a", "z-"}));
        QCOMPARE(matches("[]a]+|[^]b]", "a]bc"), (Texts{"a]", "c"}));
        QVERIFY(!TextRegex::compile(std::string(9, '[') + "a" + std::string(9, ']')).ok());
    }

    void charactersOfLaterUnicodeAreInTheirClasses()
    {
        const std::string later = "\xF0\xB1\x8D\x90"; // U+31350, Unicode 15
        QCOMPARE(matches(R"(\p{L}+)", "a" + later + "b1"), Texts{"a" + later + "b"});
        QCOMPARE(matches(R"([^\s\p{L}]+)", "!" + later), Texts{"!"});
        QCOMPARE(matches(R"(\P{L}+|[\p{Han}x]+)", "1" + later), (Texts{"1", later}));
    }

    void boundariesAreThoseOfOurWords()
    {
        QCOMPARE(matches(R"(\b\S+\b)", "e\xCC\x81_1, b"), (Texts{"e\xCC\x81_1", "b"}));
        QCOMPARE(matches(R"(\Bs)", "s as"), Texts{"s"});
    }

    void emptyMatchesComeButNotBehindAnother()
    {
        QCOMPARE(
            matches(R"((?=[A-Z])|\d*)", "aB12").size(), std::size_t{3}); // before a, B and at 12
        QCOMPARE(matches("x*", "axb"), (Texts{"", "x", ""}));
        QCOMPARE(matches("$", "\xE3\x80\x80"), Texts{""});
    }

    void literalsAreEscaped()
    {
        const std::string all = "a.b*c[d]^e$f\\g|h(i){j}?+ -\xE2\x96\x81";
        QCOMPARE(matches(escapeRegex(all), "x" + all + "x"), Texts{all});
    }

    void whatMeansSomethingElseIsRefused()
    {
        for (const char* pattern : {R"(\h)", R"(\R)", R"(\1)", R"([\b])", "[[:alpha:]]", "[a-[b]]",
                 "a{2}+", "a{2}?", "[a&&]", "[]", "(?m:a)", "(?R)", "(*UTF)", "[a", "a{", "\\",
                 "\\p", "a{x}", "(?s)a"}) {
            Result<TextRegex> regex = TextRegex::compile(pattern);
            QVERIFY2(!regex.ok(), pattern);
            QVERIFY(regex.status().message().find(pattern) != std::string::npos);
        }
        QVERIFY(!TextRegex::compile(std::string(100'000, 'a')).ok());
    }

    void expressionThatNeedsForeverGivesUp()
    {
        Result<TextRegex> regex = TextRegex::compile("(a|a|aa)+[bc]");
        RegexMatcher matcher(regex.value());
        RegexMatcher::Cursor at;
        TextRange found;

        Result<bool> more = matcher.next(std::string(200, 'a'), at, found);

        QVERIFY(!more.ok());
        QVERIFY(more.status().message().find("gives up on this text") != std::string::npos);
    }

    void longWhiteSpaceIsNoTrouble()
    {
        const std::string text(std::size_t{8} << 20, ' ');
        QCOMPARE(matches(R"(\s*[\r\n]+|\s+(?!\S)|\s+)", text + "x"), (Texts{text.substr(1), " "}));
    }
};

MR_TEST(TstTextRegex)

} // namespace mr::test::tst_text_regex

#include "tst_text_regex.moc"
