// Whole downloads, over a transport that has no network: what lies on the disk afterwards.

#include "core/data/data_files.h"
#include "core/hub/blob_lock.h"
#include "core/hub/hub_download.h"
#include "support/fake_hub.h"
#include "support/test_room.h"

#include <QTest>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

namespace mr::test::tst_hub_download {

namespace fs = std::filesystem;

struct Run {
    Status status;
    HubPlan plan;
    std::vector<std::string> notes;
    HubProgress last;
    std::vector<HttpRequest> requests;

    bool hasNote(std::string_view part) const
    {
        for (const std::string& text : notes)
            if (text.find(part) != std::string::npos)
                return true;
        return false;
    }
    bool asked(std::string_view part) const
    {
        for (const HttpRequest& request : requests)
            if (request.url.find(part) != std::string::npos)
                return true;
        return false;
    }
};

class TestHubDownload : public QObject
{
    Q_OBJECT

    Folder m_folder;
    int m_caches = 0;
    std::atomic<int> m_notes = 0;

    std::string newCache() { return m_folder.path("cache" + std::to_string(++m_caches)); }

    static HubRequest tiny(const std::string& into = {})
    {
        HubRequest request;
        request.name = "org/tiny";
        request.into = into;
        return request;
    }

    Run get(const std::string& cache, const HubRequest& request = tiny(), const FakeRepo& repo = {},
        FakeTransport::Script script = {})
    {
        FakeTransport transport(repo, std::move(script));
        HubSettings settings{{parseUrl("https://hub.example").value(), {}, false}, cache, {}};
        settings.limits.firstWait = std::chrono::milliseconds(1);
        Run run;
        HubCallbacks callbacks;
        callbacks.note = [&](const std::string& text) {
            run.notes.push_back(text);
            ++m_notes;
        };
        callbacks.progress = [&](const HubProgress& progress) { run.last = progress; };
        HubDownload download(transport, settings, callbacks);
        auto plan = download.plan(request);
        run.status = plan.status();
        if (plan.ok()) {
            run.plan = plan.value();
            run.status = download.run(run.plan);
        }
        run.requests = transport.requests();
        return run;
    }

    static std::string blob(const std::string& cache, const FakeFile& file)
    {
        return cache + "/models--org--tiny/blobs/" + hubFileOf(file).hash;
    }

    static void write(const std::string& path, std::string_view text)
    {
        fs::create_directories(fs::path(path).parent_path());
        QFile file(QString::fromStdString(path));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text.data(), static_cast<qint64>(text.size()));
    }

    static bool isWhole(const std::string& folder, const FakeRepo& repo = {})
    {
        for (const FakeFile& file : repo.files)
            if (!file.path.ends_with(".py") && readFile(folder + "/" + file.path) != file.content)
                return false;
        return true;
    }

private Q_SLOTS:
    void theCacheIsLaidOutForOtherPrograms()
    {
        const std::string cache = newCache();
        const Run run = get(cache);

        QVERIFY2(run.status.ok(), run.status.message().c_str());
        const std::string repo = cache + "/models--org--tiny";
        QCOMPARE(run.plan.folder.string(), repo + "/snapshots/" + kFakeCommit);
        QVERIFY(isWhole(run.plan.folder));
        QCOMPARE(readFile(repo + "/refs/main"), kFakeCommit);
        const FakeFile config = FakeRepo().files[0];
        QCOMPARE(fs::read_symlink(run.plan.folder / "config.json").string(),
            "../../blobs/" + hubFileOf(config).hash);
        QVERIFY(!fs::exists(run.plan.folder / "train.py"));
        QCOMPARE(run.plan.leftOut.size(), std::size_t{1});
        QVERIFY(run.last.doneBytes == run.last.allBytes && run.last.doneFiles == 3);
        QCOMPARE(run.last.allBytes, std::uint64_t{305'009});
    }

    void filesInFoldersHaveLongerLinks()
    {
        FakeRepo repo;
        repo.files = {{"a/b/c.json", "{}", false}};
        HubRequest request = tiny();
        request.include = {"*"};
        const Run run = get(newCache(), request, repo);
        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QCOMPARE(readFile(run.plan.folder.string() + "/a/b/c.json"), std::string("{}"));
        QCOMPARE(fs::read_symlink(run.plan.folder / "a/b/c.json").string(),
            "../../../../blobs/" + hubFileOf(repo.files[0]).hash);
    }

    // All bytes came, and the connection was cut before it was closed.
    void aWholeFileIsNotAskedForAgain()
    {
        const FakeFile model = FakeRepo().files[1];
        const Run run = get(newCache(), tiny(), {}, [&](const HttpUrl& url, const HttpRequest&) {
            return url.path.ends_with(model.path)
                       ? std::optional(FakeAnswer{200, {}, model.content, HttpFault::Stalled})
                       : std::nullopt;
        });
        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QVERIFY(isWhole(run.plan.folder));
        QCOMPARE(run.requests.size(), std::size_t{4}); // the list and three files
    }

    void theSecondTimeOnlyTheListIsAskedFor()
    {
        const std::string cache = newCache();
        QVERIFY(get(cache).status.ok());
        const Run second = get(cache);
        QVERIFY(second.status.ok() && second.plan.fetchBytes == 0);
        QCOMPARE(second.requests.size(), std::size_t{1});
        QCOMPARE(second.last.doneBytes, second.last.allBytes);
    }

    void damagedBlobsAreFetchedAgain()
    {
        const std::string cache = newCache();
        QVERIFY(get(cache).status.ok());
        const FakeFile model = FakeRepo().files[1];
        std::string other = model.content;
        other[1000] = static_cast<char>(other[1000] + 1);
        write(blob(cache, model), other);

        const Run second = get(cache);

        QVERIFY2(second.status.ok(), second.status.message().c_str());
        QVERIFY(second.hasNote("is damaged and is fetched again"));
        QVERIFY(isWhole(second.plan.folder));
    }

    void anEarlierDownloadIsTakenUp()
    {
        const std::string cache = newCache();
        const FakeFile model = FakeRepo().files[1];
        write(blob(cache, model) + ".incomplete", model.content.substr(0, 200'000));

        const Run run = get(cache);

        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QVERIFY(isWhole(run.plan.folder));
        QCOMPARE(run.plan.fetchBytes, std::uint64_t{105'009});
        int ranges = 0;
        for (const HttpRequest& request : run.requests)
            if (const auto range = headerOf({0, request.headers}, "range")) {
                QCOMPARE(*range, std::string("bytes=200000-"));
                ++ranges;
            }
        QCOMPARE(ranges, 1);
        QCOMPARE(run.last.doneBytes, run.last.allBytes);
    }

    void wrongBytesOfAnEarlierDownloadBeginAnew_data()
    {
        QTest::addColumn<int>("bytes");
        QTest::newRow("some") << 200'000;
        QTest::newRow("all") << 300'000;
        QTest::newRow("more") << 300'001;
    }

    void wrongBytesOfAnEarlierDownloadBeginAnew()
    {
        QFETCH(int, bytes);
        const std::string cache = newCache();
        const FakeFile model = FakeRepo().files[1];
        const std::string incomplete = blob(cache, model) + ".incomplete";
        write(incomplete, std::string(static_cast<std::size_t>(bytes), 'x'));

        const Run run = get(cache);

        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QVERIFY(isWhole(run.plan.folder));
        QVERIFY(bytes > 300'000 || run.hasNote("so it begins anew"));
        QVERIFY(!fs::exists(incomplete));
        QCOMPARE(run.last.doneBytes, run.last.allBytes);
    }

    void aWrongHashIsNeverTakenForWhole()
    {
        const std::string cache = newCache();
        const FakeRepo repo;
        const auto lie = [&](const HttpUrl& url, const HttpRequest&) -> std::optional<FakeAnswer> {
            if (!url.path.ends_with("model.safetensors"))
                return std::nullopt;
            return FakeAnswer{200, {}, std::string(300'000, 'x')};
        };
        const Run run = get(cache, tiny(), repo, lie);

        QVERIFY(run.status.kind() == ErrorKind::DataCorrupt);
        QVERIFY(contains(run.status.message(), "have not the hash that the list says"));
        QVERIFY(!fs::exists(blob(cache, repo.files[1])));
        QVERIFY(!fs::exists(blob(cache, repo.files[1]) + ".incomplete"));
        QVERIFY(!fs::exists(run.plan.folder / "model.safetensors"));
        QVERIFY(!fs::exists(cache + "/models--org--tiny/refs/main"));
        QVERIFY(get(cache).status.ok());
    }

    void aFolderOfPlainFiles()
    {
        const std::string into = m_folder.path("plain");
        FakeRepo repo;
        repo.files.push_back({"tokenizer_config.json", repo.files[0].content, false}); // twice
        const Run run = get(newCache(), tiny(into), repo);

        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QVERIFY(isWhole(into, repo));
        QVERIFY(!fs::is_symlink(into + "/config.json"));
        QVERIFY(!fs::exists(into + "/.millrace-get"));
        QCOMPARE(run.last.doneBytes, run.last.allBytes);
        const Run second = get(newCache(), tiny(into), repo);
        QVERIFY(second.status.ok() && second.requests.size() == 1);
    }

    void filesOfTheUserAreNotReplaced()
    {
        const std::string into = m_folder.path("mine");
        write(into + "/config.json", "mine");
        const Run longer = get(newCache(), tiny(into));
        QVERIFY(contains(longer.status.message(), "config.json is there and is another file"));
        QCOMPARE(longer.requests.size(), std::size_t{1});

        write(into + "/config.json", "{\"a\": 2}\n"); // of the same length
        QVERIFY(contains(get(newCache(), tiny(into)).status.message(), "is another file"));
        QCOMPARE(readFile(into + "/config.json"), std::string("{\"a\": 2}\n"));
    }

    void cancelKeepsWhatIsThere()
    {
        const std::string cache = newCache();
        const FakeRepo repo;
        FakeTransport transport(repo);
        HubDownload* running = nullptr;
        HubCallbacks callbacks;
        callbacks.progress = [&](const HubProgress& progress) {
            if (progress.doneBytes > 100'000)
                running->cancel();
        };
        HubSettings settings{{parseUrl("https://hub.example").value(), {}, false}, cache, {}};
        HubDownload download(transport, settings, callbacks);
        running = &download;
        const HubPlan plan = download.plan(tiny()).value();

        const Status status = download.run(plan);

        QVERIFY(status.kind() == ErrorKind::Cancelled);
        QVERIFY(contains(status.message(), "the same command goes on from there"));
        QVERIFY(fs::file_size(blob(cache, repo.files[1]) + ".incomplete") > 90'000);
        const Run second = get(cache);
        QVERIFY(second.status.ok() && isWhole(second.plan.folder));
        QVERIFY(second.plan.fetchBytes < 220'000);
    }

    void oneProgramAtATimeFetchesABlob()
    {
        const std::string cache = newCache();
        const FakeFile model = FakeRepo().files[1];
        const fs::path locks = cache + "/.locks/models--org--tiny";
        fs::create_directories(locks);
        std::optional<BlobLock> held(
            BlobLock::take(locks / (hubFileOf(model).hash + ".lock"), {}, [] {}).value());
        const int before = m_notes;
        std::atomic<bool> isDone = false;
        Run run;
        std::jthread other([&] {
            run = get(cache);
            isDone = true;
        });
        QElapsedTimer timer;
        timer.start();
        while (m_notes == before && timer.elapsed() < 20'000) // until it waits
            std::this_thread::yield();
        QVERIFY(!isDone);

        write(blob(cache, model), model.content); // the first program's work
        held.reset();
        other.join();

        QVERIFY2(run.status.ok(), run.status.message().c_str());
        QVERIFY(run.hasNote("another program fetches"));
        QVERIFY(!run.asked("model.safetensors"));
    }

    void theDiskIsAskedFirst()
    {
        FakeRepo repo;
        const auto huge = [&](const HttpUrl& url, const HttpRequest&) -> std::optional<FakeAnswer> {
            if (!url.path.starts_with("/api/"))
                return std::nullopt;
            HubFile file = hubFileOf(repo.files[1]);
            file.bytes = std::uint64_t{1} << 49;
            return FakeAnswer{200, {},
                "{\"sha\":\"" + kFakeCommit + "\",\"siblings\":[" + FakeRepo::entryText(file) +
                    "]}"};
        };
        const Run run = get(newCache(), tiny(), repo, huge);
        QVERIFY(contains(run.status.message(), "512.0 TiB are to be fetched"));
        QVERIFY(contains(run.status.message(), "--into"));
        QCOMPARE(run.requests.size(), std::size_t{1});
    }

    void listsThatLieAreRefused()
    {
        FakeRepo repo;
        const auto twoLengths = [&](const HttpUrl&,
                                    const HttpRequest&) -> std::optional<FakeAnswer> {
            HubFile a = hubFileOf(repo.files[1]);
            HubFile b = a;
            b.path = "other.safetensors";
            b.bytes += 1;
            return FakeAnswer{200, {},
                "{\"sha\":\"" + kFakeCommit + "\",\"siblings\":[" + FakeRepo::entryText(a) + "," +
                    FakeRepo::entryText(b) + "]}"};
        };
        QVERIFY(contains(get(newCache(), tiny(), repo, twoLengths).status.message(),
            "the hash of a file of another length"));
        const auto endless = [](const HttpUrl&, const HttpRequest&) -> std::optional<FakeAnswer> {
            return FakeAnswer{200, {{"content-length", "99999999999"}}, "{"};
        };
        QVERIFY(contains(
            get(newCache(), tiny(), repo, endless).status.message(), "larger than 64 MiB"));
    }

    void wrongRequestsAskNobody()
    {
        HubRequest request = tiny();
        request.name = "../../etc";
        QVERIFY(get(newCache(), request).requests.empty());
        request = tiny();
        request.jobs = 0;
        QVERIFY(contains(get(newCache(), request).status.message(), "choose 1 to 6"));
        request = tiny();
        request.revision = "a/../b";
        QVERIFY(get(newCache(), request).requests.empty());
    }
};

MR_TEST(TestHubDownload)

} // namespace mr::test::tst_hub_download

#include "tst_hub_download.moc"
