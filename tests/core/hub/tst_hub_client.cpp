// Redirects, tokens, tries and waits, over a transport that has no network.

#include "core/data/data_files.h"
#include "core/hub/hub_client.h"
#include "support/fake_hub.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_hub_client {

using std::chrono::milliseconds;

class TextBody final : public HubBody
{
public:
    std::vector<HttpHeader> headers() const override { return {}; }
    Status head(const HubReply& reply) override
    {
        named = reply.namedHash;
        text.clear();
        return {};
    }
    Status body(std::span<const std::byte> piece) override
    {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return {};
    }
    Status end() override { return {}; }
    bool wantsAnotherTry() const override { return false; }
    std::uint64_t receivedBytes() const override { return text.size(); }

    std::string text;
    std::string named;
};

struct Asked {
    Status status;
    std::string text;
    std::string named;
    std::vector<std::string> notes;
    std::vector<HttpRequest> requests;

    bool sentToken(std::size_t index) const
    {
        return headerOf({0, requests.at(index).headers}, "authorization").has_value();
    }
};

FakeAnswer redirect(const std::string& to)
{
    return {302, {{"location", to}, {"x-linked-etag", "\"abc\""}}, "a page"};
}

class TestHubClient : public QObject
{
    Q_OBJECT

    static Asked ask(const FakeTransport::Script& script, const std::string& token = "hf_secret",
        const std::string& endpoint = "https://hub.example", std::string path = "a.bin")
    {
        FakeTransport transport({}, script);
        HubLimits limits;
        limits.firstWait = milliseconds(1);
        limits.longestRetryAfter = milliseconds(1500);
        Asked asked;
        HubClient client(transport, {parseUrl(endpoint).value(), token, false}, limits,
            [&](const std::string& text) { asked.notes.push_back(text); }, {});
        TextBody body;
        HubRequest request;
        request.name = "org/tiny";
        asked.status = client.get({request, std::move(path)}, "/x", body);
        asked.text = body.text;
        asked.named = body.named;
        asked.requests = transport.requests();
        return asked;
    }

    // The answers in their order; the last one is repeated.
    static FakeTransport::Script answers(std::vector<FakeAnswer> list)
    {
        return [list = std::move(list), at = std::size_t{0}](
                   const HttpUrl&, const HttpRequest&) mutable -> std::optional<FakeAnswer> {
            return list[std::min(at++, list.size() - 1)];
        };
    }

private Q_SLOTS:
    void theTokenGoesToTheHubAlone()
    {
        const Asked asked =
            ask(answers({redirect("https://hub.example/y"), redirect("https://cdn.example/z"),
                redirect("https://hub.example:444/w"), {200, {}, "ok"}}));

        QVERIFY2(asked.status.ok(), asked.status.message().c_str());
        QCOMPARE(asked.text, std::string("ok"));
        QVERIFY(asked.sentToken(0) && asked.sentToken(1));
        QVERIFY(!asked.sentToken(2) && !asked.sentToken(3));
        QCOMPARE(asked.notes.size(), std::size_t{2});
        QVERIFY(contains(asked.notes[0], "through cdn.example, which gets no token"));
    }

    // The hub's word stands, also when a storage behind it has another.
    void theHubNamesTheHash()
    {
        QCOMPARE(
            ask(answers({redirect("https://cdn.example/z"), {200, {{"etag", "\"zzz\""}}, "ok"}}))
                .named,
            std::string("abc"));
        QCOMPARE(ask(answers({{200, {{"etag", "W/\"own\""}}, "ok"}})).named, std::string("own"));
    }

    void badRedirectsAreRefused_data()
    {
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("words");
        QTest::addColumn<int>("requests");
        QTest::newRow("downgrade") << "http://hub.example/x"
                                   << "redirects from https to http" << 1;
        QTest::newRow("this machine") << "https://127.0.0.1/x"
                                      << "redirects to this machine itself" << 1;
        QTest::newRow("file") << "file:///etc/passwd"
                              << "redirects wrongly" << 1;
        QTest::newRow("user") << "https://u:p@h/"
                              << "redirects wrongly" << 1;
        QTest::newRow("circle") << "/x"
                                << "redirects more than 10 times" << 11;
    }

    void badRedirectsAreRefused()
    {
        QFETCH(QString, to);
        QFETCH(QString, words);
        QFETCH(int, requests);
        const Asked asked = ask(answers({redirect(to.toStdString())}));
        QVERIFY(contains(asked.status.message(), words.toStdString()));
        QCOMPARE(asked.requests.size(), static_cast<std::size_t>(requests));
        QVERIFY(
            contains(ask(answers({{302, {}, ""}})).status.message(), "without saying where to"));
    }

    void refusalsSayTheWayOut_data()
    {
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("token");
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("words");
        QTest::newRow("no token") << 401 << ""
                                  << ""
                                  << ""
                                  << "put your token in HF_TOKEN";
        QTest::newRow("wrong token") << 401 << ""
                                     << "t"
                                     << ""
                                     << "does not accept the token";
        QTest::newRow("gated") << 403 << "GatedRepo"
                               << "t"
                               << ""
                               << "accept its licence, or ask for access, at "
                                  "https://hub.example/org/tiny,";
        QTest::newRow("no model") << 404 << "RepoNotFound"
                                  << ""
                                  << ""
                                  << "has no model org/tiny (404)";
        QTest::newRow("no revision") << 404 << "RevisionNotFound"
                                     << ""
                                     << ""
                                     << "no revision main";
        QTest::newRow("no file") << 404 << "EntryNotFound"
                                 << ""
                                 << "a.bin"
                                 << "lists the file \"a.bin\"";
        QTest::newRow("no word") << 404 << ""
                                 << ""
                                 << ""
                                 << "with a revision main (404); check";
        QTest::newRow("a teapot") << 418 << ""
                                  << ""
                                  << ""
                                  << "status 418, which is no answer of a hub";
    }

    void refusalsSayTheWayOut()
    {
        QFETCH(int, status);
        QFETCH(QString, code);
        QFETCH(QString, token);
        QFETCH(QString, path);
        QFETCH(QString, words);
        const Asked asked =
            ask(answers({{status, {{"x-error-code", code.toStdString()}}, "a page"}}),
                token.toStdString(), "https://hub.example", path.toStdString());
        QVERIFY(contains(asked.status.message(), words.toStdString()));
        QVERIFY(asked.status.kind() == ErrorKind::InvalidArgument || status == 418);
        QCOMPARE(asked.requests.size(), std::size_t{1}); // trying again cannot help
    }

    void faultsOfTheHubPass()
    {
        const Asked asked = ask(answers({{503, {}, ""}, {500, {}, ""}, {200, {}, "ok"}}));
        QVERIFY(asked.status.ok() && asked.text == "ok");
        QVERIFY(contains(asked.notes.at(0), "fault of its own (503)"));

        const Asked never = ask(answers({{503, {}, ""}}));
        QVERIFY(contains(never.status.message(), "try later"));
        QVERIFY(contains(never.status.message(), "(tried 5 times)"));
        QCOMPARE(never.requests.size(), std::size_t{5});
    }

    void retryAfterIsWaitedForUpToALimit()
    {
        QElapsedTimer timer;
        timer.start();
        const Asked asked = ask(answers({{429, {{"retry-after", "1"}}, ""}, {200, {}, "ok"}}));
        QVERIFY(asked.status.ok() && timer.elapsed() >= 1000);
        QVERIFY(contains(asked.notes.at(0), "trying again in 1 s"));

        const Asked longer = ask(answers({{429, {{"retry-after", "3600"}}, ""}}));
        QVERIFY(contains(longer.status.message(), "left alone for 3600 s"));
        QCOMPARE(longer.requests.size(), std::size_t{1});
    }

    void faultsOfTheNetwork_data()
    {
        QTest::addColumn<int>("fault");
        QTest::addColumn<QString>("words");
        QTest::addColumn<int>("tries");
        QTest::newRow("host") << static_cast<int>(HttpFault::Host)
                              << "hub.example is not found (words)" << 1;
        QTest::newRow("refused") << static_cast<int>(HttpFault::Refused) << "takes no connection"
                                 << 1;
        QTest::newRow("tls") << static_cast<int>(HttpFault::Tls) << "no secure connection" << 1;
        QTest::newRow("stalled") << static_cast<int>(HttpFault::Stalled) << "sent nothing for 60 s"
                                 << 5;
        QTest::newRow("cut") << static_cast<int>(HttpFault::Cut) << "was cut" << 5;
    }

    void faultsOfTheNetwork()
    {
        QFETCH(int, fault);
        QFETCH(QString, words);
        QFETCH(int, tries);
        FakeAnswer none;
        none.status = 0;
        none.fault = static_cast<HttpFault>(fault);
        const Asked asked = ask(answers({none}));
        QVERIFY(contains(asked.status.message(), words.toStdString()));
        QVERIFY(asked.status.kind() == ErrorKind::Io);
        QCOMPARE(asked.requests.size(), static_cast<std::size_t>(tries));
    }

    // The network was there a moment ago.
    void aConnectionThatIsLostComesBack()
    {
        FakeAnswer none;
        none.status = 0;
        none.fault = HttpFault::Host;
        const Asked asked = ask(answers({{503, {}, ""}, none, {200, {}, "ok"}}));
        QVERIFY2(asked.status.ok(), asked.status.message().c_str());
    }

    void aTokenThatWasNotSentIsSpokenOf()
    {
        FakeTransport transport({}, answers({{401, {}, ""}}));
        HubClient client(transport, {parseUrl("http://hub.example").value(), {}, true}, {},
            [](const std::string&) {}, {});
        TextBody body;
        const Status status = client.get({}, "/x", body);
        QVERIFY(contains(status.message(), "yours was not sent"));
    }

    void noMessageHoldsTheToken()
    {
        for (const int status : {401, 403, 404, 429, 500, 302}) {
            const Asked asked = ask(answers({{status, {}, ""}}));
            QVERIFY(!asked.status.ok());
            for (const std::string& text : asked.notes)
                QVERIFY(text.find("hf_secret") == std::string::npos);
            QVERIFY(asked.status.message().find("hf_secret") == std::string::npos);
        }
    }
};

MR_TEST(TestHubClient)

} // namespace mr::test::tst_hub_client

#include "tst_hub_client.moc"
