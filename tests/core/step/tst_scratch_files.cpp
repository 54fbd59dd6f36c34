// openScratchFiles(): several files filled at once, watched as one.

#include "core/step/scratch_files.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <filesystem>
#include <thread>

namespace mr::test::tst_scratch_files {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class TwoFolders
{
public:
    TwoFolders()
    {
        for (const char* name : {"a", "b"})
            fs::create_directory(path(name));
    }

    fs::path path(const char* name) const { return m_folder.filePath(name).toStdString(); }

    std::vector<ScratchSpec> specs(std::uint64_t bytes) const
    {
        return {{path("a"), "run", 0, bytes, 1}, {path("b"), "run", 1, 2 * bytes, 1}};
    }

    bool isEmpty() const { return fs::is_empty(path("a")) && fs::is_empty(path("b")); }

private:
    QTemporaryDir m_folder;
};

} // namespace

class TestScratchFiles : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void bothAreFilledAndWatchedAsOne()
    {
        const TwoFolders folders;
        const auto caller = std::this_thread::get_id();
        std::uint64_t last = 0;
        bool rises = true;
        ScratchOptions options;
        options.progress = [&](std::uint64_t done, std::uint64_t all) {
            rises =
                rises && done >= last && all == 24 * kMiB && std::this_thread::get_id() == caller;
            last = done;
        };
        {
            auto files = openScratchFiles(folders.specs(8 * kMiB), options);

            QVERIFY2(files.ok(), files.status().message().c_str());
            QCOMPARE(files.value().size(), std::size_t{2});
            QCOMPARE(files.value()[0].path().parent_path(), folders.path("a"));
            QCOMPARE(files.value()[0].bytes(), 8 * kMiB);
            QCOMPARE(files.value()[1].path().parent_path(), folders.path("b"));
            QCOMPARE(files.value()[1].bytes(), 16 * kMiB);
            QCOMPARE(fs::file_size(files.value()[1].path()), 16 * kMiB);
            QVERIFY(rises);
            QCOMPARE(last, 24 * kMiB);
        }
        QVERIFY(folders.isEmpty());
    }

    void oneThatCannotBeMadeIsTheErrorAndLeavesNone()
    {
        const TwoFolders folders;
        std::vector<ScratchSpec> specs = folders.specs(8 * kMiB);
        specs[1].folder = folders.path("none");

        const auto files = openScratchFiles(specs, {});

        QVERIFY(!files.ok());
        QVERIFY2(files.status().message().find("none") != std::string::npos,
            files.status().message().c_str());
        QVERIFY(files.status().kind() != ErrorKind::Cancelled);
        QVERIFY(folders.isEmpty());
    }

    void stoppingLeavesNone()
    {
        const TwoFolders folders;
        ScratchOptions options;
        options.cancelled = [] { return true; };

        const auto files = openScratchFiles(folders.specs(256 * kMiB), options);

        QVERIFY(!files.ok());
        QCOMPARE(files.status().kind(), ErrorKind::Cancelled);
        QVERIFY(folders.isEmpty());
    }
};

MR_TEST_WITH_APP(TestScratchFiles)

} // namespace mr::test::tst_scratch_files

#include "tst_scratch_files.moc"
