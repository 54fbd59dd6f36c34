// ScratchFile: claimed, filled once, ours or left alone.

#include "core/tier/scratch_file.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

namespace mr::test::tst_scratch_file {

namespace {

constexpr std::uint64_t kBytes = 3 * (std::uint64_t{1} << 20) + 8192; // no multiple of a block

std::string contentOf(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A descriptor that holds the lock. The process that took it is gone, as after a kill.
int lockedByADeadProcess(const std::filesystem::path& path)
{
    const int shared = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(::flock(shared, LOCK_EX));
    int code = -1;
    ::waitpid(child, &code, 0);
    return code == 0 ? shared : -1;
}

void writeText(const std::filesystem::path& path, std::string_view text)
{
    std::ofstream(path, std::ios::binary) << text;
}

bool contains(const Status& status, const std::string& word)
{
    return status.message().find(word) != std::string::npos;
}

struct Place {
    std::filesystem::path root() const { return dir.path().toStdString(); }
    std::filesystem::path file() const { return root() / "millrace-run_1-2.scratch"; }
    ScratchSpec spec(std::uint64_t bytes = kBytes) const { return {root(), "run_1", 2, bytes, 77}; }
    QTemporaryDir dir;
};

// Counts the blocks that were filled.
struct Filled {
    ScratchOptions options()
    {
        ScratchOptions o;
        o.progress = [this](std::uint64_t done, std::uint64_t all) {
            ++calls;
            last = done;
            total = all;
        };
        return o;
    }
    int calls = 0;
    std::uint64_t last = 0;
    std::uint64_t total = 0;
};

} // namespace

class TestScratchFile : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyByteIsWrittenOnce()
    {
        const Place place;
        Filled filled;

        const auto opened = ScratchFile::open(place.spec(), filled.options());

        QVERIFY2(opened.ok(), opened.status().message().c_str());
        QCOMPARE(filled.calls, 4);
        QCOMPARE(filled.last, kBytes);
        QCOMPARE(filled.total, kBytes);
        const std::string content = contentOf(place.file());
        QCOMPARE(content.size(), static_cast<std::size_t>(kBytes));
        const std::string zeros(4096, '\0');
        for (std::size_t at = 4096; at < content.size(); at += 4096)
            QVERIFY(content.compare(at, 4096, zeros) != 0);
        struct stat info {
        };
        QCOMPARE(::stat(place.file().c_str(), &info), 0);
        QVERIFY(static_cast<std::uint64_t>(info.st_blocks) * 512 >= kBytes);
        QCOMPARE(info.st_mode & 0777U, 0600U); // training state is nobody else's
    }

    void aFilledFileIsNotFilledAgain()
    {
        const Place place;
        QVERIFY(ScratchFile::open(place.spec()).ok());
        const std::string before = contentOf(place.file());
        Filled filled;

        auto opened = ScratchFile::open(place.spec(), filled.options());

        QVERIFY(opened.ok());
        QVERIFY(opened.value().reused());
        QCOMPARE(filled.calls, 0);
        QCOMPARE(contentOf(place.file()), before);
    }

    void aFileOfAnotherSizeOrWithADamagedHeaderIsFilledAnew()
    {
        const Place place;
        QVERIFY(ScratchFile::open(place.spec()).ok());
        Filled larger;
        Filled damaged;

        QVERIFY(ScratchFile::open(place.spec(kBytes + 4096), larger.options()).ok());
        {
            std::fstream file(place.file(), std::ios::in | std::ios::out | std::ios::binary);
            file.seekp(90); // in a field that nothing else would notice
            file.put('x');
        }
        QVERIFY(ScratchFile::open(place.spec(kBytes + 4096), damaged.options()).ok());

        QVERIFY(larger.calls > 0);
        QVERIFY(damaged.calls > 0);
    }

    void stoppingLeavesNothingBehind()
    {
        const Place place;
        ScratchOptions options;
        int asked = 0;
        options.cancelled = [&] { return ++asked == 3; };

        const auto opened = ScratchFile::open(place.spec(), options);

        QCOMPARE(opened.status().kind(), ErrorKind::Cancelled);
        QVERIFY(!std::filesystem::exists(place.file()));
    }

    void aLargeFileIsStoppedHalfWay_data()
    {
        QTest::addColumn<bool>("direct");
        QTest::newRow("direct, if it is offered") << true;
        QTest::newRow("buffered") << false;
    }

    void aLargeFileIsStoppedHalfWay()
    {
        QFETCH(bool, direct);
        const Place place;
        constexpr std::uint64_t kLarge = std::uint64_t{256} << 20;
        Filled filled;
        ScratchOptions options = filled.options();
        options.direct = direct;
        options.cancelled = [&] { return filled.last >= kLarge / 2; };

        const auto opened = ScratchFile::open(place.spec(kLarge), options);

        QCOMPARE(opened.status().kind(), ErrorKind::Cancelled);
        QVERIFY(contains(opened.status(), place.file().string()));
        QVERIFY(filled.last < kLarge / 2 + (2U << 20));
        QVERIFY(!std::filesystem::exists(place.file()));
    }

    void aForeignFileIsLeftAsItIs()
    {
        const Place place;
        for (const std::string& text : {std::string("x"), std::string(10000, 'y')}) {
            writeText(place.file(), text);

            const auto opened = ScratchFile::open(place.spec());

            QCOMPARE(opened.status().kind(), ErrorKind::InvalidArgument);
            QVERIFY(contains(opened.status(), "not a scratch file of Millrace"));
            QCOMPARE(contentOf(place.file()), text);
        }
        std::filesystem::remove(place.file());
        const std::filesystem::path target = place.root() / "precious";
        writeText(target, "precious");
        std::filesystem::create_symlink(target, place.file());
        QVERIFY(!ScratchFile::open(place.spec()).ok());
        QCOMPARE(contentOf(target), std::string("precious"));
        std::filesystem::remove(place.file());
        QCOMPARE(::mkfifo(place.file().c_str(), 0600), 0);
        QCOMPARE(ScratchFile::open(place.spec()).status().kind(), ErrorKind::InvalidArgument);
    }

    void aFileInUseIsRefusedAndItsUserNamed()
    {
        const Place place;
        std::array<int, 2> ready{};
        std::array<int, 2> done{};
        QCOMPARE(::pipe(ready.data()), 0);
        QCOMPARE(::pipe(done.data()), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            char byte = ScratchFile::open(place.spec()).ok() ? '1' : '0';
            // The lock went with the file: take it again, and keep it.
            auto kept = ScratchFile::open(place.spec());
            byte = kept.ok() ? byte : '0';
            (void)!::write(ready[1], &byte, 1);
            (void)!::read(done[0], &byte, 1);
            ::_exit(0);
        }
        char byte = 0;
        QCOMPARE(::read(ready[0], &byte, 1), ssize_t{1});
        QCOMPARE(byte, '1');

        const auto opened = ScratchFile::open(place.spec());
        auto list = listScratch(place.root());
        auto removed = removeStaleScratch(place.root());
        const bool stillThere = std::filesystem::exists(place.file());
        (void)!::write(done[1], &byte, 1);
        ::waitpid(child, nullptr, 0);

        QCOMPARE(opened.status().kind(), ErrorKind::Io);
        QVERIFY2(contains(opened.status(), "in use by another program"),
            opened.status().message().c_str());
        QVERIFY(contains(opened.status(), place.file().string()));
        auto found = std::move(list).value();
        QCOMPARE(found.size(), std::size_t{1});
        QVERIFY(found[0].inUse);
        QVERIFY(stillThere);
        QVERIFY(std::move(removed).value().empty());
        for (const int end : {ready[0], ready[1], done[0], done[1]})
            ::close(end);
        QVERIFY(ScratchFile::open(place.spec()).ok()); // the child is gone, and its lock with it
    }

    // The system ends its requests after the process.
    void aFileThatADeadProcessHasLockedIsStale()
    {
        const Place place;
        {
            auto made = ScratchFile::open(place.spec());
            QVERIFY(made.ok());
        }
        const int shared = lockedByADeadProcess(place.file());
        QVERIFY(shared >= 0);

        auto found = listScratch(place.root());
        auto removed = removeStaleScratch(place.root());
        ::close(shared);

        QCOMPARE(found.value().size(), std::size_t{1});
        QVERIFY(!found.value()[0].inUse);
        QCOMPARE(removed.value().size(), std::size_t{1});
        QVERIFY(!std::filesystem::exists(place.file()));
    }

    void aLockThatOutlivesItsProcessIsWaitedFor()
    {
        const Place place;
        QVERIFY(ScratchFile::open(place.spec()).ok());
        const int shared = lockedByADeadProcess(place.file());
        QVERIFY(shared >= 0);
        ScratchOptions options;
        int asked = 0;
        options.cancelled = [&] {
            if (++asked == 3)
                ::close(shared);
            return false;
        };

        const auto opened = ScratchFile::open(place.spec(), options);

        QVERIFY2(opened.ok(), opened.status().message().c_str());
        QCOMPARE(asked, 3);
    }

    void whatDoesNotFitIsSaidBeforeAByteIsWritten()
    {
        const Place place;

        const auto opened = ScratchFile::open(place.spec(std::uint64_t{1} << 55));

        QCOMPARE(opened.status().kind(), ErrorKind::OutOfMemory);
        QVERIFY(contains(opened.status(), place.root().string()));
        QVERIFY(contains(opened.status(), "free"));
        QVERIFY(contains(opened.status(), "another disk"));
        QVERIFY(!std::filesystem::exists(place.file()));
    }

    void badNamesAndFoldersAreRefused()
    {
        const Place place;
        const auto kindOf = [](ScratchSpec spec) {
            return ScratchFile::open(spec).status().kind();
        };
        ScratchSpec spec = place.spec();

        for (const char* runId : {"", "../x", "a/b", "a b"}) {
            spec.runId = runId;
            QCOMPARE(kindOf(spec), ErrorKind::InvalidArgument);
        }
        spec = place.spec();
        spec.folder = place.root() / "nowhere";
        QCOMPARE(kindOf(spec), ErrorKind::InvalidArgument);
        QCOMPARE(kindOf(place.spec(4096)), ErrorKind::InvalidArgument);
        QCOMPARE(kindOf(place.spec(10000)), ErrorKind::InvalidArgument);
    }

    void whatIsDoneToTheFileIsNoticed()
    {
        const Place place;
        auto opened = ScratchFile::open(place.spec());
        QVERIFY(opened.ok());
        const ScratchFile& file = opened.value();
        QVERIFY(file.check().ok());

        std::filesystem::rename(place.file(), place.root() / "elsewhere");
        QVERIFY(contains(file.check(), "moved or replaced"));
        writeText(place.file(), "another");
        QVERIFY(contains(file.check(), "moved or replaced"));
        std::filesystem::remove(place.file());
        std::filesystem::rename(place.root() / "elsewhere", place.file());
        QVERIFY(file.check().ok());
        std::filesystem::resize_file(place.file(), 8192);
        QVERIFY(contains(file.check(), "has 8192 bytes"));
        std::filesystem::remove(place.file());
        QVERIFY(contains(file.check(), "was deleted"));
    }

    void bufferedAccessIsSaidInWords()
    {
        const Place place;
        ScratchOptions options;
        options.direct = false;

        auto buffered = ScratchFile::open(place.spec(), options);
        QVERIFY(buffered.ok());
        QVERIFY(!buffered.value().direct());
        QVERIFY(buffered.value().access().find("buffered") != std::string::npos);
        QCOMPARE(::fcntl(buffered.value().descriptor(), F_GETFL) & O_DIRECT, 0);
        buffered = ScratchFile::open({place.root(), "run_2", 0, kBytes, 0});
        QVERIFY(buffered.ok());
        const bool direct = buffered.value().direct();
        QCOMPARE((::fcntl(buffered.value().descriptor(), F_GETFL) & O_DIRECT) != 0, direct);
        QCOMPARE(buffered.value().access() == "direct I/O", direct);
    }

    void staleFilesAreFoundAndRemovedAndForeignOnesKept()
    {
        const Place place;
        QVERIFY(ScratchFile::open(place.spec()).ok());
        QVERIFY(ScratchFile::open({place.root(), "other", 0, 8192, 1}).ok());
        const std::filesystem::path foreign = place.root() / "millrace-mine-0.scratch";
        writeText(foreign, "mine");

        auto found = std::move(listScratch(place.root())).value();
        auto removed = std::move(removeStaleScratch(place.root())).value();

        QCOMPARE(found.size(), std::size_t{2});
        QCOMPARE(found[0].path.filename().string(), std::string("millrace-other-0.scratch"));
        QCOMPARE(found[0].bytes, std::uint64_t{8192});
        QVERIFY(!found[0].inUse);
        QCOMPARE(removed.size(), std::size_t{2});
        QVERIFY(!std::filesystem::exists(place.file()));
        QCOMPARE(contentOf(foreign), std::string("mine"));
        QVERIFY(!listScratch(place.root() / "nowhere").ok());
    }

    void theFilesOfOneRunCanBeKept()
    {
        const Place place;
        for (const char* run : {"run_1", "run_11", "run_2"})
            QVERIFY(ScratchFile::open({place.root(), run, 0, 8192, 1}).ok());

        auto removed = std::move(removeStaleScratch(place.root(), "run_1")).value();

        auto left = std::move(listScratch(place.root())).value();
        QCOMPARE(removed.size(), std::size_t{2});
        QCOMPARE(left.size(), std::size_t{1});
        QCOMPARE(left[0].path.filename().string(), std::string("millrace-run_1-0.scratch"));
    }

    void removingTakesOnlyOurOwnFile()
    {
        const Place place;
        {
            auto opened = ScratchFile::open(place.spec());
            QVERIFY(opened.ok());
            opened.value().removeOnClose();
            std::filesystem::rename(place.file(), place.root() / "elsewhere");
            writeText(place.file(), "another");
        }
        QCOMPARE(contentOf(place.file()), std::string("another"));
    }
};

MR_TEST(TestScratchFile)

} // namespace mr::test::tst_scratch_file

#include "tst_scratch_file.moc"
