// Downloads through the network plugin, from a hub on the loopback that misbehaves in one way each.
//
// After every one of them nothing half-written passes for whole, and a healthy hub completes it.

#include "app/net_plugin.h"
#include "core/data/data_files.h"
#include "core/hub/hub_download.h"
#include "support/hub_server.h"
#include "support/test_room.h"

#include <QTest>

#include <filesystem>
#include <map>

namespace mr::test::tst_net_get {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

constexpr const char* kModel = "model.safetensors";
constexpr std::size_t kHalf = 150'000;
constexpr milliseconds kImpatient(500);  // with a hub that sends nothing
constexpr milliseconds kPatient(20'000); // with all others, however busy this machine is

std::string listOf(const std::string& entry)
{
    return "{\"sha\":\"" + kFakeCommit + "\",\"siblings\":[" + entry + "]}";
}

std::string entryOf(const std::string& path)
{
    return "{\"rfilename\":\"" + path + "\",\"size\":1,\"blobId\":\"" + std::string(40, 'a') +
           "\"}";
}

const FakeFile& modelFile()
{
    static const FakeFile file = FakeRepo().files[1];
    return file;
}

std::string lengthOf(std::size_t bytes)
{
    return std::to_string(bytes);
}

// The first half, and then the connection ends or nothing more comes.
FakeAnswer half(HttpFault fault)
{
    return {200, {{"content-length", lengthOf(modelFile().content.size())}},
        modelFile().content.substr(0, kHalf), fault};
}

FakeAnswer part(std::size_t first, const std::string& range)
{
    return {206, {{"content-range", range}}, modelFile().content.substr(first)};
}

FakeAnswer rawAnswer(const std::string& text)
{
    FakeAnswer answer;
    answer.raw = text;
    return answer;
}

FakeAnswer withoutLength(std::string body)
{
    FakeAnswer answer;
    answer.body = std::move(body);
    answer.hasLength = false;
    return answer;
}

FakeAnswer to(const std::string& location)
{
    return {302, {{"location", location}}, "moved"};
}

} // namespace

struct Fault {
    bool isList = false; // of the list; else of the model's file
    int times = 0;       // 0: always
    std::function<FakeAnswer(const ServedRequest& request)> answer{};
    std::string words{}; // of the error; empty: the download succeeds all the same
};

class TestNetGet : public QObject
{
    Q_OBJECT

    Folder m_folder;
    std::unique_ptr<HttpTransport> m_network;
    std::map<std::string, Fault> m_faults;
    int m_caches = 0;
    milliseconds m_stall = kPatient;

    struct Run {
        Status status;
        HubPlan plan;
        std::vector<std::string> notes;
    };

    Run get(const std::string& address, const std::string& cache, const std::string& token = {},
        HubKind kind = HubKind::Model)
    {
        HubSettings settings{{parseUrl(address).value(), token, false}, cache, {}};
        settings.limits.firstWait = milliseconds(1);
        settings.limits.stall = m_stall;
        settings.limits.attempts = 3;
        Run run;
        HubCallbacks callbacks;
        callbacks.note = [&](const std::string& text) { run.notes.push_back(text); };
        HubDownload download(*m_network, settings, callbacks);
        HubRequest request;
        request.name = "org/tiny";
        request.kind = kind;
        auto plan = download.plan(request);
        run.status = plan.status();
        if (plan.ok()) {
            run.plan = plan.value();
            run.status = download.run(run.plan);
        }
        return run;
    }

    // Every blob under its name is what its name says, and every link leads to one.
    static bool isAllRight(const std::string& cache, bool isDone)
    {
        const FakeRepo repo;
        const fs::path folder = cache + "/models--org--tiny";
        std::error_code error;
        for (const FakeFile& file : repo.files) {
            const fs::path blob = folder / "blobs" / hubFileOf(file).hash;
            const fs::path link = folder / "snapshots" / kFakeCommit / file.path;
            if (fs::exists(blob) && readFile(blob.string()) != file.content)
                return false;
            if (fs::exists(fs::symlink_status(link, error)) &&
                readFile(link.string()) != file.content)
                return false;
            if (isDone && !file.path.ends_with(".py") && !fs::exists(link))
                return false;
        }
        return fs::exists(folder / "refs" / "main") == isDone;
    }

    void addList(const char* name, int times, const char* words, FakeAnswer answer)
    {
        m_faults[name] = {true, times, [answer](const ServedRequest&) { return answer; }, words};
    }
    void addFile(const char* name, int times, const char* words, FakeAnswer answer)
    {
        m_faults[name] = {false, times, [answer](const ServedRequest&) { return answer; }, words};
    }
    // After half of the file: the answer to the request for the rest.
    void addRest(const char* name, const char* words, FakeAnswer answer)
    {
        m_faults[name] = {false, 0,
            [answer](const ServedRequest& request) -> FakeAnswer {
                if (request.header("range"))
                    return answer;
                return request.count == 1 ? half(HttpFault::Cut)
                                          : FakeRepo::ranged(modelFile(), std::nullopt);
            },
            words};
    }

    void addLists()
    {
        addList("list 401", 0, "put your token in HF_TOKEN", {401, {}, "x"});
        addList("list 401 with a challenge", 0, "put your token in HF_TOKEN",
            {401, {{"www-authenticate", "Basic realm=\"x\""}}, "x"});
        addList("list 403", 0, "accept its licence", {403, {}, "x"});
        addList(
            "list 404", 0, "has no model org/tiny", {404, {{"x-error-code", "RepoNotFound"}}, ""});
        addList("list 404 revision", 0, "no revision main",
            {404, {{"x-error-code", "RevisionNotFound"}}, ""});
        addList(
            "list 429 for long", 0, "left alone for 3600 s", {429, {{"retry-after", "3600"}}, ""});
        addList("list 429 once", 1, "", {429, {{"retry-after", "0"}}, ""});
        addList("list 500", 0, "fault of its own (500)", {500, {}, "x"});
        addList("list 502 once", 1, "", {502, {}, "x"});
        addList("list 204", 0, "status 204, which is no answer", {204, {}, ""});
        addList("list a page", 0, "it is no list of files", {200, {}, "<html>"});
        addList("list empty", 0, "it is no list of files", {200, {}, ""});
        addList("list cut", 0, "was cut", {200, {{"content-length", "5000"}}, "{", HttpFault::Cut});
        addList("list cut once", 1, "", {200, {{"content-length", "5000"}}, "{", HttpFault::Cut});
        addList("list absolute path", 0, "is not relative", {200, {}, listOf(entryOf("/etc/x"))});
        addList("list leads out", 0, "leads out", {200, {}, listOf(entryOf("../../x.json"))});
        addList(
            "list long path", 0, "is longer", {200, {}, listOf(entryOf(std::string(2000, 'a')))});
        addList("list file and folder", 0, "as a file and as a folder",
            {200, {}, listOf(entryOf("a.json") + "," + entryOf("a.json/b.json"))});
        addList("list without commit", 0, "\"sha\" is no hash", {200, {}, "{\"siblings\":[]}"});
        addList("list too large", 0, "larger than 64 MiB",
            {200, {{"content-length", "999999999"}}, "{", HttpFault::Cut});
        addList("list compressed", 0, "it is no list of files",
            {200, {{"content-encoding", "gzip"}}, "\x1f\x8b\x08 no"});
        addList("list in a circle", 0, "perhaps in a circle",
            to("/api/models/org/tiny/revision/main?blobs=true"));
        addList("list nowhere", 0, "without saying where to", {302, {}, ""});
        addList("list to a file", 0, "redirects wrongly", to("file:///etc/passwd"));
        addList("list silent", 0, "sent nothing for 0.5 s", {0, {}, "", HttpFault::Stalled});
        addList(
            "list stalls once", 1, "", {200, {{"content-length", "99"}}, "{", HttpFault::Stalled});
        addList("list hangs up", 0, "was cut", {0, {}, "", HttpFault::Cut});
        addList("list no HTTP", 0, "127.0.0.1", rawAnswer("SSH-2.0-OpenSSH_9.2\r\n"));
    }

    void addFiles()
    {
        const std::string& whole = modelFile().content;
        addFile("file 404", 0, "lists the file \"model.safetensors\"", {404, {}, ""});
        addFile("file 403", 0, "accept its licence", {403, {}, ""});
        addFile("file 429 once", 1, "", {429, {{"retry-after", "0"}}, ""});
        addFile("file 503", 0, "fault of its own (503)", {503, {}, "x"});
        addFile("file 503 once", 1, "", {503, {}, "x"});
        addFile("file cut once", 1, "", half(HttpFault::Cut));
        addFile("file stalls once", 1, "", half(HttpFault::Stalled));
        addFile("file silent", 0, "sent nothing for 0.5 s", {0, {}, "", HttpFault::Stalled});
        addFile(
            "file too short", 0, "it has 5 bytes, and the list says 300000", {200, {}, "short"});
        addFile("file too long", 0, "it has 300001 bytes, and", {200, {}, whole + "x"});
        addFile("file ends early", 0, "ended \"model.safetensors\" early", withoutLength(""));
        addFile("file ends early once", 1, "", withoutLength(whole.substr(0, kHalf)));
        addFile("file has more bytes", 0, "more bytes come than the 300000",
            withoutLength(whole + "x"));
        addFile(
            "file other bytes", 0, "have not the hash", {200, {}, std::string(whole.size(), 'x')});
        addFile("file is a page", 0, "it has 11 bytes", {200, {}, "please wait"});
        addFile("file another", 0, "another one than the list says",
            {200, {{"etag", "\"" + std::string(64, 'e') + "\""}}, whole});
        addFile("file half a chunk", 1, "",
            rawAnswer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n" +
                      whole.substr(0, 99)));
        addFile("file in a circle", 0, "perhaps in a circle",
            to("/org/tiny/resolve/" + kFakeCommit + "/model.safetensors"));
        addFile("file with nobody there", 0, "takes no connection", to("http://127.0.0.1:1/x"));
        addFile("file a part unasked", 0, "another part of", part(0, "bytes 0-299999/300000"));
        addRest("rest from the start", "", part(0, "bytes 0-299999/300000"));
        addRest("rest of another file", "", part(kHalf, "bytes 150000-299999/300001"));
        addRest("rest without a range", "", {206, {}, whole.substr(kHalf)});
        addRest("rest with a broken range", "", part(kHalf, "bytes nonsense"));
        addRest("rest too short", "",
            {206, {{"content-range", "bytes 150000-200000/300000"}}, whole.substr(kHalf, 50'001)});
        addRest("rest is the whole", "", {200, {}, whole});
        addRest("rest is refused", "", {416, {}, ""});
        addRest("rest has other bytes", "",
            {206, {{"content-range", "bytes 150000-299999/300000"}}, std::string(kHalf, 'y')});
    }

private Q_SLOTS:
    void initTestCase()
    {
        auto plugin = app::loadNetPlugin(MR_NET_PLUGIN);
        QVERIFY2(plugin.ok(), plugin.status().message().c_str());
        m_network = plugin.value()->makeTransport();
    }

    void aHealthyHubIsReadWhole()
    {
        const std::string cache = m_folder.path("healthy");
        HubServer hub;
        const Run run = get(hub.address(), cache, "hf_secret");
        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QVERIFY(isAllRight(cache, true));
        for (const ServedRequest& request : hub.requests())
            QVERIFY(request.header("authorization").value_or("") == "Bearer hf_secret");
    }

    void aStorageGetsNoToken()
    {
        const std::string cache = m_folder.path("storage");
        HubServer storage;
        const std::string place = storage.address();
        HubServer hub({}, [&](const ServedRequest& request) -> std::optional<FakeAnswer> {
            return request.target.ends_with(kModel) ? std::optional(to(place + request.target))
                                                    : std::nullopt;
        });
        const Run run = get(hub.address(), cache, "hf_secret");
        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QVERIFY(isAllRight(cache, true));
        QCOMPARE(storage.requests().size(), std::size_t{1});
        QVERIFY(!storage.requests()[0].header("authorization"));
        QVERIFY(storage.requests()[0].header("user-agent").value_or("").starts_with("millrace/"));
        QVERIFY(contains(run.notes.at(0), "which gets no token"));
    }

    void datasetsHaveAddressesOfTheirOwn()
    {
        FakeRepo repo;
        repo.kind = HubKind::Dataset;
        repo.files = {{"data/train.jsonl", noise(2'000'000, 5), true}, {"empty.csv", "", false}};
        HubServer hub(repo);
        const Run run = get(hub.address(), m_folder.path("data"), {}, HubKind::Dataset);
        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QCOMPARE(readFile(run.plan.folder.string() + "/data/train.jsonl"), repo.files[0].content);
        QVERIFY(fs::exists(run.plan.folder / "empty.csv"));
    }

    void hubsThatMisbehave_data()
    {
        addLists();
        addFiles();
        QTest::addColumn<QString>("name");
        for (const auto& [name, fault] : m_faults)
            QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }

    void hubsThatMisbehave()
    {
        QFETCH(QString, name);
        const Fault& fault = m_faults.at(name.toStdString());
        const std::string cache = m_folder.path("cache" + std::to_string(++m_caches));
        m_stall = name.contains("stall") || name.contains("silent") ? kImpatient : kPatient;
        {
            HubServer hub({}, [&](const ServedRequest& request) -> std::optional<FakeAnswer> {
                const bool isMeant = fault.isList ? request.target.starts_with("/api/")
                                                  : request.target.ends_with(kModel);
                const bool isDue = fault.times == 0 || request.count <= fault.times;
                return isMeant && isDue ? std::optional(fault.answer(request)) : std::nullopt;
            });
            const Run run = get(hub.address(), cache);
            if (fault.words.empty())
                QVERIFY2(run.status.ok(), run.status.message().c_str());
            else
                QVERIFY(!run.status.ok() && contains(run.status.message(), fault.words));
            QVERIFY(isAllRight(cache, run.status.ok()));
        }
        m_stall = kPatient;
        HubServer healthy;
        const Run second = get(healthy.address(), cache);
        QVERIFY2(second.status.ok(), second.status.message().c_str());
        QVERIFY(isAllRight(cache, true));
    }

    void whatWasFetchedIsNotFetchedAgain()
    {
        const std::string cache = m_folder.path("twice");
        {
            HubServer hub({}, [&](const ServedRequest& request) -> std::optional<FakeAnswer> {
                if (!request.target.ends_with(kModel))
                    return std::nullopt;
                return request.count == 1 ? half(HttpFault::Cut) : FakeAnswer{404, {}, ""};
            });
            QVERIFY(!get(hub.address(), cache).status.ok());
        }
        HubServer healthy;
        const Run second = get(healthy.address(), cache);
        QVERIFY2(second.status.ok(), second.status.message().c_str());
        bool isResumed = false;
        for (const ServedRequest& request : healthy.requests())
            isResumed = isResumed || request.header("range") == "bytes=150000-";
        QVERIFY(isResumed);
    }

    void nobodyListens()
    {
        const Run run = get("http://127.0.0.1:1", m_folder.path("nobody"));
        QVERIFY(contains(run.status.message(), "127.0.0.1:1 takes no connection"));
    }

    void noNameIsNoNetwork()
    {
        const Run run = get("http://no-such-host.invalid", m_folder.path("nowhere"));
        QVERIFY(contains(run.status.message(), "no-such-host.invalid"));
        QVERIFY(contains(run.status.message(), "check the connection"));
    }

    void aHubWithoutTlsIsNotTrusted()
    {
        m_stall = kImpatient; // the hub waits for the end of a request
        HubServer hub;
        const Run run = get(
            "https://127.0.0.1:" + std::to_string(hub.port()), m_folder.path("tls"), "hf_secret");
        QVERIFY(!run.status.ok());
        QVERIFY(contains(run.status.message(), "127.0.0.1"));
        m_stall = kPatient;
        QVERIFY(hub.requests().empty());
    }

    void wrongPluginsAreRefused()
    {
        QVERIFY(contains(app::loadNetPlugin({}).status().message(), "is not beside the program"));
        QVERIFY(contains(app::loadNetPlugin("/nowhere.so").status().message(), "does not exist"));
        const std::string text = m_folder.write("text.so", "no library");
        QVERIFY(contains(app::loadNetPlugin(text).status().message(), "is not a shared library"));
    }

    void cleanupTestCase() { m_network.reset(); }
};

MR_TEST_WITH_APP(TestNetGet)

} // namespace mr::test::tst_net_get

#include "tst_net_get.moc"
