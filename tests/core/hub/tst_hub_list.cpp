#include "core/data/data_files.h"
#include "core/hub/hub_list.h"
#include "support/fake_hub.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_hub_list {

class TestHubList : public QObject
{
    Q_OBJECT

    static std::string withEntry(const std::string& entry)
    {
        return "{\"sha\":\"" + kFakeCommit + "\",\"siblings\":[" + entry + "]}";
    }

private Q_SLOTS:
    void aListIsRead()
    {
        const FakeRepo repo;
        const HubListing listing = parseHubList(repo.listText(), "hub").value();

        QCOMPARE(listing.commit, kFakeCommit);
        QCOMPARE(listing.files.size(), repo.files.size());
        QCOMPARE(listing.files[1].path, std::string("model.safetensors"));
        QVERIFY(listing.files[1].isLarge && listing.files[1].bytes == 300'000);
        QCOMPARE(listing.files[0].hash, hubFileOf(repo.files[0]).hash);
    }

    // Values that sha256sum and git hash-object print.
    void hashesAreThoseOfTheHub()
    {
        QCOMPARE(hubFileOf({"a", "abc", true}).hash,
            std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
        QCOMPARE(hubFileOf({"a", "hello\n", false}).hash,
            std::string("ce013625030ba8dba906f756967f9e9ca394464a"));
        QCOMPARE(hubFileOf({"a", "", false}).hash,
            std::string("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"));
    }

    void brokenListsAreRefused_data()
    {
        const std::string hash(40, 'a');
        const auto entry = [](const std::string& fields) {
            return QString::fromStdString(withEntry("{" + fields + "}"));
        };
        const auto rest = [&](const char* size) {
            return std::string(",\"size\":") + size + ",\"blobId\":\"" + hash + "\"";
        };
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("words");
        QTest::newRow("empty") << ""
                               << "it is no list of files";
        QTest::newRow("a page") << "<!doctype html><html></html>"
                                << "it is no list of files";
        QTest::newRow("cut") << QString::fromStdString(FakeRepo().listText()).left(100)
                             << "it is no list of files";
        QTest::newRow("deep") << QString(100'000, QLatin1Char('[')) << "it is no list of files";
        QTest::newRow("a list") << "[]"
                                << "a JSON object is expected";
        QTest::newRow("no commit") << "{\"siblings\":[]}"
                                   << "\"sha\" is no hash";
        QTest::newRow("commit that leads out")
            << "{\"sha\":\"../../../../../../../../../../../etc/abcd\",\"siblings\":[]}"
            << "\"sha\" is no hash";
        QTest::newRow("no files") << QString::fromStdString("{\"sha\":\"" + kFakeCommit + "\"}")
                                  << "has no list \"siblings\"";
        QTest::newRow("files are text")
            << QString::fromStdString("{\"sha\":\"" + kFakeCommit + "\",\"siblings\":\"a\"}")
            << "has no list \"siblings\"";
        QTest::newRow("a number") << QString::fromStdString(withEntry("5")) << "is no object";
        QTest::newRow("no path") << entry("\"size\":1") << "has no text \"rfilename\"";
        QTest::newRow("path is null") << entry("\"rfilename\":null") << "has no text \"rfilename\"";
        QTest::newRow("absolute") << entry("\"rfilename\":\"/a\"" + rest("1")) << "is not relative";
        QTest::newRow("up") << entry("\"rfilename\":\"../a\"" + rest("1")) << "leads out";
        QTest::newRow("no size") << entry("\"rfilename\":\"a\",\"blobId\":\"" + hash + "\"")
                                 << "no count of bytes";
        for (const char* size : {"-1", "1.5", "\"1\"", "1e30", "18446744073709551615", "true"})
            QTest::newRow(size) << entry("\"rfilename\":\"a\"" + rest(size)) << "no count of bytes";
        QTest::newRow("no hash") << entry("\"rfilename\":\"a\",\"size\":1")
                                 << "\"blobId\" is no hash";
        QTest::newRow("capital hash")
            << entry("\"rfilename\":\"a\",\"size\":1,\"blobId\":\"" + std::string(40, 'A') + "\"")
            << "\"blobId\" is no hash";
        QTest::newRow("hash that is a path")
            << entry("\"rfilename\":\"a\",\"size\":1,\"lfs\":{\"size\":1,\"sha256\":\"../x\"}")
            << "\"sha256\" is no hash";
        QTest::newRow("two sizes") << entry("\"rfilename\":\"a\",\"size\":1,\"lfs\":{\"size\":2,"
                                            "\"sha256\":\"" +
                                            std::string(64, 'a') + "\"}")
                                   << "it has two sizes";
        QTest::newRow("lfs is a list")
            << entry("\"rfilename\":\"a\",\"lfs\":[]") << "\"lfs\" is no object";
        QTest::newRow("twice") << QString::fromStdString(
                                      withEntry("{\"rfilename\":\"a\"" + rest("1") +
                                                "},{\"rfilename\":\"a\"" + rest("1") + "}"))
                               << "twice";
    }

    void brokenListsAreRefused()
    {
        QFETCH(QString, text);
        QFETCH(QString, words);
        const auto listing = parseHubList(text.toStdString(), "hub.example: list");
        QVERIFY(!listing.ok());
        QVERIFY(contains(listing.status().message(), words.toStdString()));
    }
};

MR_TEST(TestHubList)

} // namespace mr::test::tst_hub_list

#include "tst_hub_list.moc"
