#include "core/base/bytes.h"
#include "core/base/file.h"
#include "core/base/folder_lock.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QTest>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace mr::test::tst_file {

namespace {

std::span<const std::byte> bytesOf(std::string_view text)
{
    return std::as_bytes(std::span(text));
}

} // namespace

class TestFile : public QObject
{
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    std::filesystem::path path(const char* name) const
    {
        return std::filesystem::path(m_folder.path().toStdString()) / name;
    }

private Q_SLOTS:

    void writesAppendsAndReadsBack()
    {
        {
            File file = File::create(path("a")).value();
            QVERIFY(file.write(bytesOf("one ")).ok());
            QVERIFY(file.sync().ok());
        }
        {
            File file = File::openAppend(path("a")).value();
            QVERIFY(file.write(bytesOf("two")).ok());
        }
        File file = File::openRead(path("a")).value();

        std::array<std::byte, 3> tail{};
        QVERIFY(file.readAt(4, tail).ok());

        QCOMPARE(file.bytes().value(), std::uint64_t{7});
        QCOMPARE(std::memcmp(tail.data(), "two", 3), 0);
        QCOMPARE(readWholeFile(path("a"), 100).value(), std::string("one two"));
    }

    void aFolderHasOneWriter()
    {
        std::filesystem::create_directory(path("run"));
        {
            const Result<FolderLock> one = FolderLock::take(path("run"));
            QVERIFY(one.ok());
            const Status other = FolderLock::take(path("run")).status();
            QVERIFY(!other.ok());
            QCOMPARE(other.kind(), ErrorKind::InvalidArgument);
            const std::string pid = "(process " + std::to_string(::getpid()) + ")";
            QVERIFY2(other.message().find(pid) != std::string::npos, other.message().c_str());
        }
        QVERIFY(FolderLock::take(path("run")).ok());
        QCOMPARE(FolderLock::take(path("nowhere")).status().kind(), ErrorKind::Io);
    }

    void aLockThatLeadsElsewhereIsNotTaken()
    {
        std::filesystem::create_directory(path("forged"));
        QVERIFY(replaceFile(path("precious"), "precious").ok());
        std::filesystem::create_symlink(path("precious"), path("forged") / FolderLock::kFile);
        const Status refused = FolderLock::take(path("forged")).status();
        QVERIFY(!refused.ok());
        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QCOMPARE(readWholeFile(path("precious"), 100).value(), std::string("precious"));
    }

    void nothingIsWrittenThroughALinkOrIntoAPipe()
    {
        QVERIFY(replaceFile(path("theirs"), "theirs").ok());
        std::filesystem::create_symlink(path("theirs"), path("link"));
        QCOMPARE(::mkfifo(path("pipe").c_str(), 0600), 0);

        for (const char* name : {"link", "pipe"})
            for (const Status& refused :
                {File::openAppend(path(name)).status(), File::create(path(name)).status()}) {
                QVERIFY(!refused.ok());
                QCOMPARE(refused.kind(), ErrorKind::Io);
                QVERIFY2(refused.message().find(path(name).string()) != std::string::npos,
                    refused.message().c_str());
            }

        QCOMPARE(readWholeFile(path("theirs"), 100).value(), std::string("theirs"));
    }

    void readingPastTheEndNamesFileAndOffset()
    {
        QVERIFY(replaceFile(path("short"), "12345").ok());
        const File file = File::openRead(path("short")).value();
        std::array<std::byte, 8> out{};

        const Status status = file.readAt(2, out);

        QVERIFY(!status.ok());
        QCOMPARE(status.kind(), ErrorKind::Io);
        QVERIFY(status.message().find("short") != std::string::npos);
        QVERIFY(status.message().find("byte 5 of the 10") != std::string::npos);
        QVERIFY(!file.readAt(UINT64_MAX - 2, out).ok());
    }

    void openingNamesThePathAndTheReason()
    {
        auto missing = File::openRead(path("nothing"));
        QVERIFY(!missing.ok());
        QCOMPARE(missing.status().kind(), ErrorKind::Io);
        QVERIFY(missing.status().message().find("nothing: No such file") != std::string::npos);

        auto folder = File::openRead(m_folder.path().toStdString());
        QVERIFY(!folder.ok());
        QVERIFY(folder.status().message().find("Is a directory") != std::string::npos);
    }

    void aFileOverTheLimitIsRefused()
    {
        QVERIFY(replaceFile(path("large"), std::string(100, 'x')).ok());
        auto content = readWholeFile(path("large"), 99);
        QVERIFY(!content.ok());
        QCOMPARE(content.status().kind(), ErrorKind::InvalidArgument);
        QCOMPARE(readWholeFile(path("large"), 100).value().size(), std::size_t{100});
    }

    void replacingLeavesNoOtherFileBehind()
    {
        QVERIFY(replaceFile(path("state"), "old").ok());
        QVERIFY(replaceFile(path("state"), "new").ok());
        QCOMPARE(readWholeFile(path("state"), 10).value(), std::string("new"));

        // A folder of that name cannot be replaced by a file.
        std::filesystem::create_directory(path("taken"));
        QVERIFY(!replaceFile(path("taken"), "x").ok());

        for (const auto& entry : std::filesystem::directory_iterator(path("")))
            QVERIFY(entry.path().string().find(".tmp") == std::string::npos);
    }

    void movingAFileMovesItsDescriptor()
    {
        File file = File::create(path("moved")).value();
        File other = std::move(file);
        QVERIFY(other.isOpen());
        QVERIFY(!file.isOpen()); // NOLINT(bugprone-use-after-move): that is the question
    }

    void freeSpaceIsThatOfTheNearestFolderThatExists()
    {
        auto here = freeBytes(m_folder.path().toStdString());
        auto below = freeBytes(path("not/yet/there"));
        QVERIFY(here.ok());
        QVERIFY(below.ok());
        QVERIFY(here.value() > 0);
    }

    void bytesAreFormattedInPowersOf1024()
    {
        QCOMPARE(formatBytes(0), std::string("0 B"));
        QCOMPARE(formatBytes(1023), std::string("1023 B"));
        QCOMPARE(formatBytes(1024), std::string("1.0 KiB"));
        QCOMPARE(formatBytes(std::uint64_t{3} << 29), std::string("1.5 GiB"));
        QCOMPARE(formatBytes((std::uint64_t{1} << 30) - 1), std::string("1.0 GiB"));
    }
};

MR_TEST(TestFile)

} // namespace mr::test::tst_file

#include "tst_file.moc"
