#include "core/data/data_files.h"
#include "core/hub/http_fields.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_http_fields {

using std::chrono::seconds;

class TestHttpFields : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void anAddressIsTakenApart()
    {
        const HttpUrl url = parseUrl("HTTPS://Hub.Example:8443/a/b?c=d#e").value();
        QCOMPARE(url.scheme, std::string("https"));
        QCOMPARE(url.host, std::string("hub.example"));
        QCOMPARE(url.port, 8443);
        QCOMPARE(url.path, std::string("/a/b?c=d"));
        QCOMPARE(parseUrl("https://h:443").value().text(), std::string("https://h/"));
        QCOMPARE(parseUrl("http://[::1]:80/x").value().host, std::string("[::1]"));
        QVERIFY(isLoopback(parseUrl("http://127.0.0.1:5").value()));
        QVERIFY(!isLoopback(parseUrl("http://127.0.0.1.evil.example").value()));
    }

    void wrongAddressesAreRefused_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("words");
        QTest::newRow("no scheme") << "hub.example"
                                   << "does not begin with https://";
        QTest::newRow("file") << "file:///etc/passwd"
                              << "does not begin with https://";
        QTest::newRow("user") << "https://me:secret@hub.example/"
                              << "has a user in it";
        QTest::newRow("no host") << "https:///x"
                                 << "has no host";
        QTest::newRow("port") << "https://h:99999/"
                              << "has no port";
        QTest::newRow("line end") << "https://h/a\r\nX: y"
                                  << "has characters";
        QTest::newRow("letters") << QStringLiteral("https://h/\u00e4") << "has characters";
        QTest::newRow("long") << "https://h/" + QString(20'000, QLatin1Char('a')) << "is longer";
    }

    void wrongAddressesAreRefused()
    {
        QFETCH(QString, text);
        QFETCH(QString, words);
        const auto url = parseUrl(text.toStdString());
        QVERIFY(!url.ok());
        QVERIFY(contains(url.status().message(), words.toStdString()));
    }

    void redirectsAreResolved_data()
    {
        QTest::addColumn<QString>("location");
        QTest::addColumn<QString>("to");
        QTest::newRow("whole") << "https://cdn.example/f?sig=a%2Fb://c"
                               << "https://cdn.example/f?sig=a%2Fb://c";
        QTest::newRow("host") << "//cdn.example/f"
                              << "https://cdn.example/f";
        QTest::newRow("root") << "/f?next=http://x"
                              << "https://h:1/f?next=http://x";
        QTest::newRow("beside") << "f"
                                << "https://h:1/a/f";
    }

    void redirectsAreResolved()
    {
        QFETCH(QString, location);
        QFETCH(QString, to);
        const HttpUrl base = parseUrl("https://h:1/a/b?c=/d").value();
        QCOMPARE(resolveUrl(base, location.toStdString()).value().text(), to.toStdString());
    }

    void rangesAreReadStrictly_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("isRead");
        QTest::newRow("whole") << "bytes 2-9/10" << true;
        QTest::newRow("no total") << "bytes 2-9/*" << true;
        QTest::newRow("capitals") << "Bytes 2-9/10" << true;
        for (const char* text : {"", "bytes", "bytes */10", "bytes 2-9", "bytes 9-2/10",
                 "bytes 2-10/10", "bytes -2-9/10", "bytes 2-9/10x", "bytes 2-/10", "bits 2-9/10",
                 "bytes 2-99999999999999999999/*", "bytes 2/9-10"})
            QTest::newRow(text) << text << false;
    }

    void rangesAreReadStrictly()
    {
        QFETCH(QString, text);
        QFETCH(bool, isRead);
        const auto range = parseContentRange(text.toStdString());
        QCOMPARE(range.has_value(), isRead);
        QVERIFY(!isRead || (range->first == 2 && range->last == 9));
    }

    void waitsAreSecondsOrDates()
    {
        QVERIFY(parseRetryAfter("120", 0) == seconds(120));
        QVERIFY(parseRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", 784'111'777 - 60) == seconds(60));
        QVERIFY(parseRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", 900'000'000) == seconds(0));
        for (const char* text : {"", "soon", "-1", "1.5", "99999999999", "Sun, 06 Nov"})
            QVERIFY2(!parseRetryAfter(text, 0), text);
    }

    void headersAndEtagsAreFound()
    {
        const HttpHead head{200, {{"ETag", " W/\"abc\" "}, {"Content-Length", "12"}}};
        QCOMPARE(etagText(headerOf(head, "etag").value()), std::string("abc"));
        QVERIFY(contentLength(head) == std::uint64_t{12});
        QVERIFY(!contentLength({200, {{"content-length", "-1"}}}));
        QVERIFY(!headerOf(head, "range"));
        QCOMPARE(percentEncoded("a b/c%", true), std::string("a%20b/c%25"));
        QCOMPARE(percentEncoded("refs/pr/1", false), std::string("refs%2Fpr%2F1"));
    }
};

MR_TEST(TestHttpFields)

} // namespace mr::test::tst_http_fields

#include "tst_http_fields.moc"
