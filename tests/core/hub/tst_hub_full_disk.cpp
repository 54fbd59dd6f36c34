// A disk that is too small for a download, or runs full in its middle.

#include "core/data/data_files.h"
#include "core/hub/hub_download.h"
#include "support/fake_hub.h"
#include "support/full_disk.h"
#include "support/test_room.h"

#include <QTest>

#include <cerrno>
#include <filesystem>

namespace mr::test::tst_hub_full_disk {

class TestHubFullDisk : public QObject
{
    Q_OBJECT

    static Status get(const std::string& cache)
    {
        FakeTransport transport({});
        HubSettings settings{{parseUrl("https://hub.example").value(), {}, false}, cache, {}};
        HubDownload download(transport, settings, {});
        HubRequest request;
        request.name = "org/tiny";
        auto plan = download.plan(request);
        return plan.ok() ? download.run(plan.value()) : plan.status();
    }

private Q_SLOTS:
    void aDiskThatIsTooSmallIsNotBegunWith()
    {
        const Folder folder;
        FullDisk disk(folder.path());
        disk.sayFree(100'000);
        const Status status = get(folder.path("hub"));
        QVERIFY(contains(status.message(), "297.9 KiB are to be fetched"));
        QVERIFY(contains(status.message(), "has room for"));
        QVERIFY(!std::filesystem::exists(folder.path("hub")));
    }

    void aDiskThatRunsFullKeepsWhatIsThere()
    {
        const Folder folder;
        FullDisk disk(folder.path());
        const FakeFile model = FakeRepo().files[1];
        const std::string blob =
            folder.path("hub/models--org--tiny/blobs/") + hubFileOf(model).hash;
        disk.failAfter(150'000, ENOSPC);

        const Status status = get(folder.path("hub"));

        QVERIFY(status.kind() == ErrorKind::Io);
        QVERIFY(contains(status.message(), "no space left on the disk"));
        QVERIFY(contains(status.message(), "the same command goes on from there"));
        QVERIFY(!std::filesystem::exists(blob));
        QVERIFY(std::filesystem::file_size(blob + ".incomplete") > 100'000);
        disk.heal();
        const Status second = get(folder.path("hub"));
        QVERIFY2(second.ok(), second.message().c_str());
        QCOMPARE(readFile(blob), model.content);
    }
};

MR_TEST(TestHubFullDisk)

} // namespace mr::test::tst_hub_full_disk

#include "tst_hub_full_disk.moc"
