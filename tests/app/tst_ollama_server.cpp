// The Ollama of this machine: what it is asked, in which order, and each of its refusals.
//
// A server on the loopback answers as Ollama does.

#include "app/net_plugin.h"
#include "app/ollama_server.h"
#include "core/data/data_files.h"
#include "support/hub_server.h"
#include "support/test_room.h"

#include <QProcess>
#include <QTest>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace mr::test::tst_ollama_server {

using app::OllamaServer;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kFileBytes = 5'000'000;

Environment with(const char* host)
{
    return [host](const char* name) {
        return std::string_view(name) == "OLLAMA_HOST" ? host : nullptr;
    };
}

std::string addressOf(const char* host)
{
    auto address = app::ollamaAddress(with(host));
    return address.ok() ? address.value().text() : address.status().message();
}

// A healthy one, with the blob or without.
FakeAnswer healthy(const ServedRequest& request, bool hasBlob)
{
    if (request.target == "/api/version")
        return {200, {}, R"({"version":"0.33.1"})"};
    if (request.target == "/api/show")
        return {404, {}, R"({"error":"model 'x' not found"})"};
    if (request.method == "HEAD")
        return {hasBlob ? 200 : 404};
    if (request.target == "/api/create")
        return {200, {}, "{\"status\":\"parsing GGUF\"}\n{\"status\":\"success\"}\n"};
    return {201};
}

} // namespace

class TestOllamaServer : public QObject
{
    Q_OBJECT

    Folder m_folder;
    std::string m_bytes = noise(kFileBytes, 3);
    Modelfile m_modelfile{"./model.gguf", "{{ .Prompt }}", {"<|end|>", "\"\n", "\xff"},
        {{"temperature", "0.7"}, {"top_k", "40"}}};
    std::vector<ServedRequest> m_requests;
    std::vector<std::uint64_t> m_progress;
    std::uint64_t m_stopAt = ~std::uint64_t{0};

    // checkFree() and create(), against a server that answers so.
    Status make(const HubServer::Script& script, const std::string& name = "eggs:v1")
    {
        HubServer served({}, script);
        OllamaServer ollama(app::loadNetPlugin(MR_NET_PLUGIN).value()->makeTransport(),
            parseUrl(served.address()).value());
        m_progress.clear();
        Status status = ollama.checkFree(name);
        if (status.ok())
            status = ollama.create(name, m_folder.path("model.gguf"), m_modelfile,
                [this](std::uint64_t done, std::uint64_t all) {
                    m_progress.push_back(done);
                    return done >= m_stopAt || all != 2 * kFileBytes
                               ? Status::error(ErrorKind::Cancelled, "stopped")
                               : Status();
                });
        m_requests = served.requests();
        return status;
    }

    struct Ended {
        int code = -1;
        Json json;
    };

    Ended exportTo(const std::string& folder, const std::string& host)
    {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QStringLiteral("OLLAMA_HOST"), QString::fromStdString(host));
        environment.remove(QStringLiteral("MILLRACE_NET_PLUGIN"));
        process.setProcessEnvironment(environment);
        process.start(QStringLiteral(MR_MILLRACE),
            {QStringLiteral("export"),
                qEnvironmentVariable("MILLRACE_SOURCE") + QStringLiteral("/resources/sample/model"),
                QStringLiteral("--to"), QStringLiteral("ollama"), QStringLiteral("--out"),
                QString::fromStdString(m_folder.path(folder)), QStringLiteral("--create"),
                QStringLiteral("eggs"), QStringLiteral("--device"), QStringLiteral("cpu"),
                QStringLiteral("--json")});
        if (!process.waitForFinished(60'000))
            qFatal("millrace did not end within a minute");
        return {process.exitCode(),
            Json::parse(process.readAllStandardOutput().toStdString(), nullptr, false)};
    }

private Q_SLOTS:
    void initTestCase() { std::ofstream(m_folder.path("model.gguf"), std::ios::binary) << m_bytes; }
    void init() { m_stopAt = ~std::uint64_t{0}; }

    void addressesAreOfThisMachine()
    {
        QCOMPARE(addressOf(nullptr), std::string("http://127.0.0.1:11434/"));
        QCOMPARE(addressOf(""), std::string("http://127.0.0.1:11434/"));
        QCOMPARE(addressOf("0.0.0.0"), std::string("http://127.0.0.1:11434/"));
        QCOMPARE(addressOf("0.0.0.0:8080"), std::string("http://127.0.0.1:8080/"));
        QCOMPARE(addressOf(":8080"), std::string("http://127.0.0.1:8080/"));
        QCOMPARE(addressOf("[::]:1"), std::string("http://127.0.0.1:1/"));
        QCOMPARE(addressOf("[::1]"), std::string("http://[::1]:11434/"));
        QCOMPARE(addressOf("localhost"), std::string("http://localhost:11434/"));
        QCOMPARE(addressOf("http://localhost/"), std::string("http://localhost/"));
        QVERIFY(contains(addressOf("192.168.1.7"), "the model would leave this PC"));
        QVERIFY(contains(addressOf("https://ollama.example"), "the model would leave this PC"));
        QVERIFY(contains(addressOf("ftp://localhost"), "which is no address"));
        QVERIFY(contains(addressOf("localhost:99999"), "which is no address"));
    }

    void namesAreThoseThatOllamaTakes()
    {
        for (const char* name : {"a", "my-model", "my.model:v2", "me/my_model", "me/m:latest"})
            QVERIFY2(app::checkOllamaName(name).ok(), name);
        const std::string longest(81, 'a');
        for (const char* name : {"", "-a", "a b", "a/b/c", "a:", ":b", "a:b:c", "/a", "a.b/c",
                 "a\nb", "\xc3\xa9", longest.c_str()})
            QVERIFY2(!app::checkOllamaName(name).ok(), name);
    }

    void aModelIsMade()
    {
        const Status made =
            make([](const ServedRequest& request) { return healthy(request, false); });
        QVERIFY2(made.ok(), made.message().c_str());
        QCOMPARE(m_requests.size(), std::size_t{5});
        QCOMPARE(m_requests[1].body, std::string(R"({"model":"eggs:v1"})"));
        const std::string digest = "sha256:" + hubFileOf({"model.gguf", m_bytes, true}).hash;
        QCOMPARE(m_requests[2].target, "/api/blobs/" + digest);
        QCOMPARE(m_requests[3].target, "/api/blobs/" + digest);
        QCOMPARE(m_requests[3].method, std::string("POST"));
        QVERIFY(m_requests[3].body == m_bytes);
        const Json asked = Json::parse(m_requests[4].body);
        const Json parameters{
            {"stop", {"<|end|>", "\"\n", "\ufffd"}}, {"temperature", 0.7}, {"top_k", 40}};
        QVERIFY(asked ==
                Json({{"model", "eggs:v1"}, {"stream", true}, {"files", {{"model.gguf", digest}}},
                    {"template", "{{ .Prompt }}"}, {"parameters", parameters}}));
        QVERIFY(std::ranges::is_sorted(m_progress));
        QCOMPARE(m_progress.back(), std::uint64_t{2 * kFileBytes});
    }

    void aFileThatIsThereIsNotSentAgain()
    {
        const Status made =
            make([](const ServedRequest& request) { return healthy(request, true); });
        QVERIFY2(made.ok(), made.message().c_str());
        QCOMPARE(m_requests.size(), std::size_t{4});
    }

    void refusalsAreToldInItsWords_data()
    {
        QTest::addColumn<QString>("target");
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("body");
        QTest::addColumn<QString>("words");
        QTest::newRow("other server") << "/api/version" << 404 << "<html>"
                                      << "is no Ollama";
        QTest::newRow("no version") << "/api/version" << 200 << "{}"
                                    << "is no Ollama";
        QTest::newRow("has it") << "/api/show" << 200 << "{}"
                                << "has a model eggs:v1 already";
        QTest::newRow("show fails") << "/api/show" << 500 << R"({"error":"disk"})"
                                    << "does not say whether it has eggs:v1: disk";
        QTest::newRow("blob") << "/api/blobs" << 400 << R"({"error":"digest mismatch"})"
                              << "refuses the file: digest mismatch";
        QTest::newRow("blob, no words") << "/api/blobs" << 507 << ""
                                        << "the file: status 507";
        QTest::newRow("create") << "/api/create" << 200
                                << "{\"status\":\"a\"}\n{\"error\":\"unknown\\u001b type\"}\n"
                                << "makes no model of it: unknown\\x1b type";
        QTest::newRow("create at once") << "/api/create" << 400 << R"({"error":"name"})"
                                        << "makes no model of it: name";
        QTest::newRow("no end") << "/api/create" << 200 << "{\"status\":\"writing\"}\n"
                                << "makes no model of it: status 200";
        QTest::newRow("rubbish") << "/api/create" << 200 << "[1,2]\n\n{"
                                 << "no model of it";
    }

    void refusalsAreToldInItsWords()
    {
        QFETCH(QString, target);
        QFETCH(int, status);
        QFETCH(QString, body);
        QFETCH(QString, words);
        const Status made = make([&](const ServedRequest& request) {
            const bool isMeant =
                request.target.starts_with(target.toStdString()) && request.method != "HEAD";
            return isMeant ? FakeAnswer{status, {}, body.toStdString()} : healthy(request, false);
        });
        QVERIFY(!made.ok());
        QVERIFY2(contains(made.message(), words.toStdString()), made.message().c_str());
    }

    void nobodyThereIsTold()
    {
        OllamaServer ollama(app::loadNetPlugin(MR_NET_PLUGIN).value()->makeTransport(),
            parseUrl("http://127.0.0.1:1").value());
        const Status status = ollama.checkFree("a");
        QVERIFY2(contains(status.message(), "no Ollama answers at 127.0.0.1:1: start it"),
            status.message().c_str());
    }

    void aCutConnectionIsTold()
    {
        const Status made = make([](const ServedRequest& request) {
            return request.target == "/api/create" ? FakeAnswer{0, {}, "", HttpFault::Cut}
                                                   : healthy(request, false);
        });
        QVERIFY2(contains(made.message(), "the connection with Ollama at 127.0.0.1"),
            made.message().c_str());
    }

    void theCommandLineMakesOne()
    {
        HubServer served({}, [](const ServedRequest& request) { return healthy(request, false); });
        const Ended ended = exportTo("made", served.address());
        QCOMPARE(ended.code, 0);
        QVERIFY(ended.json["ollama"] == "eggs");
        QCOMPARE(served.requests().size(), std::size_t{5});
        QVERIFY(served.requests()[3].body == readFile(m_folder.path("made") + "/model.gguf"));
        const Json asked = Json::parse(served.requests()[4].body);
        QVERIFY(asked["model"] == "eggs");
    }

    void aServerThatRefusesLeavesTheFolderWhole()
    {
        HubServer served({}, [](const ServedRequest& request) {
            return request.target == "/api/create" ? FakeAnswer{500, {}, R"({"error":"full"})"}
                                                   : healthy(request, false);
        });
        const Ended ended = exportTo("whole", served.address());
        QCOMPARE(ended.code, 4);
        QVERIFY(contains(ended.json["not_created"].get<std::string>(), "no model of it: full"));
        QVERIFY(std::filesystem::exists(m_folder.path("whole") + "/model.gguf"));
    }

    void withoutAServerNothingIsWritten()
    {
        const Ended ended = exportTo("nothing", "127.0.0.1:1");
        QCOMPARE(ended.code, 4);
        QVERIFY(contains(ended.json.dump(), "no Ollama answers at 127.0.0.1:1"));
        QVERIFY(!std::filesystem::exists(m_folder.path("nothing")));
    }

    void aStopActsWhileTheFileIsHashedOrSent()
    {
        for (const std::uint64_t at : {std::uint64_t{1}, std::uint64_t{kFileBytes + 1}}) {
            m_stopAt = at;
            const Status made =
                make([](const ServedRequest& request) { return healthy(request, false); });
            QVERIFY(!made.ok() && made.kind() == ErrorKind::Cancelled);
            QVERIFY(m_requests.back().target != "/api/create");
        }
    }
};

MR_TEST_WITH_APP(TestOllamaServer)

} // namespace mr::test::tst_ollama_server

#include "tst_ollama_server.moc"
