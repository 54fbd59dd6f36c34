#include "core/data/data_files.h"
#include "core/hub/hub_names.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_hub_names {

class TestHubNames : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void namesOfHubsAreTaken()
    {
        for (const char* name : {"gpt2", "Qwen/Qwen3-0.6B", "a_b/c.d-e"})
            QVERIFY2(checkHubName(name).ok(), name);
        for (const char* revision : {"main", "v1.0", "refs/pr/1", "feature_x/y"})
            QVERIFY2(checkHubRevision(revision).ok(), revision);
    }

    void otherNamesAreRefused()
    {
        for (const char* name : {"", "/", "a/", "/a", "a/b/c", "../a", "a/..", "a b", "a?b", "-a/b",
                 "a/.b", "a--b", "a\nb", "a/b.", "https://huggingface.co/a/b"})
            QVERIFY2(checkHubName(name).kind() == ErrorKind::InvalidArgument, name);
        for (const char* revision : {"", "a/../b", "/a", "a//b", "a b", "-x", "a?b", "a/.git/x"})
            QVERIFY2(!checkHubRevision(revision).ok(), revision);
        QVERIFY(!checkHubName(std::string(97, 'a')).ok());
    }

    void pathsOfStrangersAreRefused_data()
    {
        QTest::addColumn<QByteArray>("path");
        QTest::addColumn<QString>("words");
        QTest::newRow("empty") << QByteArray() << "is not relative";
        QTest::newRow("absolute") << QByteArray("/etc/passwd") << "is not relative";
        QTest::newRow("up") << QByteArray("a/../../b") << "leads out of its folder";
        QTest::newRow("dot") << QByteArray("./a") << "leads out of its folder";
        QTest::newRow("double slash") << QByteArray("a//b") << "an empty part";
        QTest::newRow("folder") << QByteArray("a/") << "an empty part";
        QTest::newRow("long") << QByteArray(1025, 'a') << "longer than 1024 bytes";
        QTest::newRow("long part") << QByteArray(241, 'a') << "more than 240 bytes";
        QTest::newRow("nul") << QByteArray("a\0b", 3) << "a control character";
        QTest::newRow("line end") << QByteArray("a\nb") << "a control character";
        QTest::newRow("backslash") << QByteArray("a\\b") << "a control character";
        QTest::newRow("not UTF-8") << QByteArray("a\xff") << "is not UTF-8";
        QTest::newRow("git") << QByteArray(".GIT/config") << "belongs to another program";
        QTest::newRow("ours") << QByteArray(".millrace-get/x") << "belongs to another program";
    }

    void pathsOfStrangersAreRefused()
    {
        QFETCH(QByteArray, path);
        QFETCH(QString, words);
        const Status status = checkHubPath(path.toStdString());
        QVERIFY(!status.ok());
        QVERIFY(contains(status.message(), words.toStdString()));
    }

    void aFileIsNoFolder()
    {
        const auto check = [](std::initializer_list<const char*> paths) {
            std::vector<HubFile> files;
            for (const char* path : paths)
                files.push_back({path, 0, {}, false});
            return checkHubPaths(files);
        };
        QVERIFY(check({"a", "a-b", "a.c", "ab", "b/a", "b/b"}).ok());
        QVERIFY(contains(check({"a/b", "a-b", "a.c", "a"}).message(), "\"a\" as a file and as"));
        QVERIFY(contains(check({"x/y/z", "x/y"}).message(), "\"x/y\" as a file and as"));
        QVERIFY(contains(check({"a", "b", "a"}).message(), "\"a\" twice"));
    }

    void addressesAreEncoded()
    {
        HubRequest request;
        request.name = "org/name";
        request.revision = "refs/pr/1";
        QCOMPARE(listAddress(request),
            std::string("/api/models/org/name/revision/refs%2Fpr%2F1?blobs=true"));
        request.kind = HubKind::Dataset;
        QCOMPARE(fileAddress(request, "abc", "d/a b?.json"),
            std::string("/datasets/org/name/resolve/abc/d/a%20b%3F.json"));
        QCOMPARE(pageAddress(request), std::string("/datasets/org/name"));
    }
};

MR_TEST(TestHubNames)

} // namespace mr::test::tst_hub_names

#include "tst_hub_names.moc"
