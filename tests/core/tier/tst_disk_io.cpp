// DiskIo: the same cases for io_uring and for threads, and io_uring's ladder step by step.

#include "core/tier/disk_rig.h"
#include "support/test_room.h"

#include <liburing.h>

#include <cerrno>
#include <set>

namespace mr::test::tst_disk_io {

namespace {

constexpr std::uint32_t kBlock = 64 * 1024;
constexpr std::uint64_t kBlocks = 48;

struct Bench {
    explicit Bench(DiskEngine engine, bool registered = false)
    {
        auto opened = ScratchFile::open(
            {folder.path().toStdString(), "io", 0, kDiskPageBytes + kBlocks * kBlock, 0});
        if (!opened.ok())
            qFatal("%s", opened.status().message().c_str());
        files.push_back(std::move(opened).value());
        opens = {&files.front()};
        const std::vector<std::span<std::byte>> regions = {memory.all()};
        DiskEngineWish wish{engine, kDiskThreads, {}};
        if (registered)
            wish.memory = regions;
        auto choice = chooseDiskEngine(opens, wish);
        if (!choice.ok())
            qFatal("%s", choice.status().message().c_str());
        about = choice.value().about;
        io = std::move(choice.value().io);
    }
    DiskRequest request(DiskOp op, std::uint64_t block) const
    {
        return {
            op, 0, kDiskPageBytes + block * kBlock, memory.data() + block * kBlock, kBlock, block};
    }
    // All blocks, as many at once as there is place for. The tags that came back.
    std::multiset<std::uint64_t> runAll(DiskOp op)
    {
        std::multiset<std::uint64_t> tags;
        std::uint64_t next = 0;
        std::array<DiskCompletion, 7> got;
        while (tags.size() < kBlocks) {
            while (next < kBlocks && io->submit(request(op, next)))
                ++next;
            const int count = io->reap(got, std::chrono::seconds(5));
            if (count <= 0)
                return tags;
            for (int i = 0; i < count; ++i)
                if (got[static_cast<std::size_t>(i)].result == kBlock)
                    tags.insert(got[static_cast<std::size_t>(i)].tag);
        }
        return tags;
    }

    QTemporaryDir folder;
    DiskMemory memory{kBlocks * kBlock};
    std::vector<ScratchFile> files;
    std::vector<const DiskFile*> opens;
    std::string about;
    std::unique_ptr<DiskIo> io;
};

std::int64_t oneResult(DiskIo& io, const DiskRequest& request)
{
    DiskCompletion completion;
    if (!io.submit(request) || io.reap({&completion, 1}, std::chrono::seconds(5)) != 1)
        return INT64_MIN;
    return completion.tag == request.tag ? completion.result : INT64_MIN;
}

// A kernel that answers `error` to a ring with any of `flags`, or to every ring.
UringCalls refusing(int error, unsigned flags, bool every, std::vector<unsigned>& asked)
{
    UringCalls calls = systemUringCalls();
    calls.setup = [=, &asked, real = calls.setup](
                      unsigned entries, io_uring* ring, io_uring_params* params) {
        asked.push_back(params->flags);
        if (every || (params->flags & flags) != 0)
            return -error;
        return real(entries, ring, params);
    };
    return calls;
}

bool has(const std::string& text, const char* word)
{
    return text.find(word) != std::string::npos;
}

} // namespace

class TestDiskIo : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void manyRequestsComeBackOnceEach_data()
    {
        QTest::addColumn<DiskEngine>("engine");
        QTest::addColumn<bool>("registered");
        QTest::newRow("threads") << DiskEngine::Threads << false;
        if (uringIsThere()) {
            QTest::newRow("io_uring") << DiskEngine::Uring << false;
            QTest::newRow("io_uring, registered memory") << DiskEngine::Uring << true;
        }
    }
    void manyRequestsComeBackOnceEach()
    {
        QFETCH(DiskEngine, engine);
        QFETCH(bool, registered);
        Bench bench(engine, registered);
        for (int generation = 1; generation <= 3; ++generation) {
            fillTile(bench.memory.all(), 0, generation);

            const auto written = bench.runAll(DiskOp::Write);
            std::memset(bench.memory.data(), 0, bench.memory.all().size());
            const auto read = bench.runAll(DiskOp::Read);

            QCOMPARE(written.size(), static_cast<std::size_t>(kBlocks));
            QCOMPARE(read.size(), static_cast<std::size_t>(kBlocks));
            for (std::uint64_t tag = 0; tag < kBlocks; ++tag)
                QCOMPARE(read.count(tag), std::size_t{1});
            QVERIFY(holdsTile(bench.memory.all(), 0, generation));
        }
    }

    void aReadPastTheEndIsShortOrNothing_data() { engineRows(); }
    void aReadPastTheEndIsShortOrNothing()
    {
        QFETCH(DiskEngine, engine);
        Bench bench(engine);
        const std::uint64_t end = bench.opens[0]->bytes();

        QCOMPARE(oneResult(*bench.io, {DiskOp::Read, 0, end - 4096, bench.memory.data(), 8192, 3}),
            std::int64_t{4096});
        QCOMPARE(oneResult(*bench.io, {DiskOp::Read, 0, end, bench.memory.data(), 4096, 4}),
            std::int64_t{0});
    }

    void anErrorIsACompletion_data() { engineRows(); }
    void anErrorIsACompletion()
    {
        QFETCH(DiskEngine, engine);
        Bench bench(engine);

        const std::int64_t result =
            oneResult(*bench.io, {DiskOp::Write, 0, 4096, nullptr, 4096, 1});

        QCOMPARE(result, std::int64_t{-EFAULT});
    }

    void moreThanItsCapacityIsRefusedUntilSomeCameBack_data() { engineRows(); }
    void moreThanItsCapacityIsRefusedUntilSomeCameBack()
    {
        QFETCH(DiskEngine, engine);
        Bench bench(engine);
        std::size_t taken = 0;
        std::array<DiskCompletion, 64> got;
        DiskRequest request = bench.request(DiskOp::Read, 0);
        request.bytes = 4096;
        const auto elsewhere = [&] { // no two requests write to the same memory
            request.memory = bench.memory.data() + (taken * 4096) % (kBlocks * kBlock);
        };

        // The submission queue is shorter than the completion queue: flushing makes place in it.
        for (int quiet = 0; quiet < 2;) {
            elsewhere();
            if (bench.io->submit(request)) {
                ++taken;
                quiet = 0;
            } else {
                QCOMPARE(bench.io->flush(), 0);
                ++quiet;
            }
            QVERIFY(taken <= bench.io->capacity());
        }
        QCOMPARE(taken, bench.io->capacity());
        int back = 0;
        while (back == 0)
            back = bench.io->reap(got, std::chrono::seconds(5));
        elsewhere();
        QVERIFY(bench.io->submit(request));

        std::size_t all = static_cast<std::size_t>(back);
        while (all < taken + 1) {
            const int count = bench.io->reap(got, std::chrono::seconds(5));
            QVERIFY(count >= 0);
            all += static_cast<std::size_t>(count);
        }
        QCOMPARE(bench.io->reap(got, std::chrono::microseconds(0)), 0);
    }

    void aWakeEndsTheWait_data() { engineRows(); }
    void aWakeEndsTheWait()
    {
        QFETCH(DiskEngine, engine);
        Bench bench(engine);
        std::array<DiskCompletion, 4> got;
        for (int i = 0; i < 20; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            std::jthread waker([&] { bench.io->wake(); });

            const int count = bench.io->reap(got, std::chrono::seconds(60));

            QCOMPARE(count, 0);
            QVERIFY(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
        }
    }

    void aWaitWithNothingToWaitForEnds_data() { engineRows(); }
    void aWaitWithNothingToWaitForEnds()
    {
        QFETCH(DiskEngine, engine);
        Bench bench(engine);
        std::array<DiskCompletion, 4> got;
        const auto begin = std::chrono::steady_clock::now();

        QCOMPARE(bench.io->reap(got, std::chrono::milliseconds(20)), 0);

        const auto took = std::chrono::steady_clock::now() - begin;
        QVERIFY(took >= std::chrono::milliseconds(15) && took < std::chrono::seconds(10));
    }

    void theLadderGoesDownWhereAFlagIsNotKnown()
    {
        if (!uringIsThere())
            return;
        std::vector<unsigned> asked;

        const UringOpening second =
            openUring({0}, {}, refusing(EINVAL, IORING_SETUP_DEFER_TASKRUN, false, asked));
        QVERIFY(second.io);
        QCOMPARE(
            asked, (std::vector<unsigned>{IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                       IORING_SETUP_COOP_TASKRUN}));
        QVERIFY2(has(second.words, "io_uring (COOP_TASKRUN)"), second.words.c_str());
        asked.clear();
        const UringOpening third = openUring({0}, {},
            refusing(EINVAL, IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN, false, asked));
        QVERIFY(third.io);
        QCOMPARE(asked.back(), 0U);
        QVERIFY2(has(third.words, "io_uring (no flags)"), third.words.c_str());
    }

    void aRefusalIsExplainedAndThreadsTakeOver_data()
    {
        QTest::addColumn<int>("error");
        QTest::addColumn<QString>("remedy");
        QTest::newRow("EPERM") << EPERM << "io_uring";
        QTest::newRow("EACCES") << EACCES << "io_uring";
        QTest::newRow("ENOSYS") << ENOSYS << "Linux 5.6";
        QTest::newRow("ENOMEM") << ENOMEM << "ulimit -l unlimited";
        QTest::newRow("EINVAL for all") << EINVAL << "not known why";
    }
    void aRefusalIsExplainedAndThreadsTakeOver()
    {
        QFETCH(int, error);
        QFETCH(QString, remedy);
        QTemporaryDir folder;
        auto file = ScratchFile::open({folder.path().toStdString(), "io", 0, 4096 + kMiB, 0});
        QVERIFY(file.ok());
        std::vector<ScratchFile> files;
        files.push_back(std::move(file).value());
        const std::vector<const DiskFile*> opens = {&files.front()};
        std::vector<unsigned> asked;
        const UringCalls calls = refusing(error, 0, true, asked);

        auto chosen = chooseDiskEngine(opens, {}, calls);
        const auto insisted = chooseDiskEngine(opens, {DiskEngine::Uring}, calls);

        QVERIFY(chosen.ok());
        QCOMPARE(std::string(chosen.value().io->name()), std::string("8 threads"));
        const std::string& about = chosen.value().about;
        QVERIFY2(has(about, "io_uring is refused"), about.c_str());
        QVERIFY2(has(about, remedy.toStdString().c_str()), about.c_str());
        if (error == EPERM)
            QVERIFY2(has(about, "seccomp") || has(about, "sysctl"), about.c_str());
        QCOMPARE(insisted.status().kind(), ErrorKind::Io);
        QVERIFY(has(insisted.status().message(), remedy.toStdString().c_str()));
        QCOMPARE(asked.size(), std::size_t(error == EINVAL ? 6 : 2));
    }

    void memoryThatCannotBeRegisteredIsUsedAllTheSame_data()
    {
        QTest::addColumn<int>("answer");
        QTest::addColumn<QString>("word");
        QTest::newRow("none, too little may be locked") << -ENOMEM << "ulimit -l unlimited";
        QTest::newRow("none, not supported") << -EOPNOTSUPP << "not registered";
        QTest::newRow("a part") << 1 << "only 1 of 2 buffers";
    }
    void memoryThatCannotBeRegisteredIsUsedAllTheSame()
    {
        QFETCH(int, answer);
        QFETCH(QString, word);
        if (!uringIsThere())
            return;
        Bench bench(DiskEngine::Threads);
        const std::span<std::byte> all = bench.memory.all();
        const std::vector<std::span<std::byte>> memory = {
            all.subspan(all.size() / 2), all.first(all.size() / 2)};
        UringCalls calls = systemUringCalls();
        calls.registerBuffers = [=, real = calls.registerBuffers](
                                    io_uring* ring, const iovec* parts, unsigned) {
            return answer < 0 ? answer : real(ring, parts, static_cast<unsigned>(answer));
        };

        auto chosen = chooseDiskEngine(bench.opens, {DiskEngine::Uring, 8, memory}, calls);
        QVERIFY(chosen.ok());
        QVERIFY2(
            has(chosen.value().about, word.toStdString().c_str()), chosen.value().about.c_str());
        bench.io = std::move(chosen.value().io);
        fillTile(bench.memory.all(), 0, 1);

        QCOMPARE(bench.runAll(DiskOp::Write).size(), static_cast<std::size_t>(kBlocks));
        std::memset(bench.memory.data(), 0, all.size());
        QCOMPARE(bench.runAll(DiskOp::Read).size(), static_cast<std::size_t>(kBlocks));
        QVERIFY(holdsTile(bench.memory.all(), 0, 1));
    }

    void partsAreAtMostAGibibyteAndAscend()
    {
        std::byte* base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
        constexpr std::size_t kGiB = std::size_t{1} << 30;
        const std::vector<std::span<std::byte>> memory = {
            {base + 4 * kGiB, 2 * kGiB + 4096}, {base, kGiB}};

        const std::vector<iovec> parts = uringBufferParts(memory);

        QCOMPARE(parts.size(), std::size_t{4});
        QCOMPARE(parts[0].iov_base, static_cast<void*>(base));
        QCOMPARE(parts[1].iov_len, kGiB);
        QCOMPARE(parts[3].iov_base, static_cast<void*>(base + 6 * kGiB));
        QCOMPARE(parts[3].iov_len, std::size_t{4096});
    }

    // A means that says yes and does nothing is found out, and the next one taken.
    void theSelfTestFindsAMeansThatLies()
    {
        Bench bench(DiskEngine::Threads);
        DiskFaults faults;
        faults.rules = {{FaultKind::Lost, DiskOp::Write, 0, 0, 1}};
        FaultyIo lying(std::move(bench.io), faults);

        const Status status = testDiskIo(lying, bench.opens);

        QCOMPARE(status.kind(), ErrorKind::DataCorrupt);
        QVERIFY(has(status.message(), "does not give back"));
        QVERIFY(testDiskIo(lying, bench.opens).ok());
    }
};

MR_TEST(TestDiskIo)

} // namespace mr::test::tst_disk_io

#include "tst_disk_io.moc"
