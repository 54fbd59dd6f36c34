// Every way a disk can fail ends in the right bytes or in a clear error, never in silence.

#include "core/tier/disk_rig.h"
#include "support/failing_gate.h"
#include "support/test_room.h"

#include <cerrno>
#include <fstream>

Q_DECLARE_METATYPE(mr::test::FaultRule)

namespace mr::test::tst_disk_faults {

namespace {

constexpr int kReap = 0; // the rule answers in the place of a request

FaultRule result(DiskOp op, std::int64_t value, int times = 1)
{
    return {FaultKind::Result, op, 1, value, times};
}

struct Case {
    const char* name;
    FaultRule rule;
    int retries;      // expected count where it ends well
    const char* word; // in the error; null: it ends well
    ErrorKind kind = ErrorKind::Io;
};

const std::vector<Case>& cases()
{
    constexpr DiskOp kRead = DiskOp::Read;
    constexpr DiskOp kWrite = DiskOp::Write;
    const auto shortOf = [](DiskOp op, std::int64_t bytes) {
        return FaultRule{FaultKind::Short, op, 1, bytes, 1};
    };
    static const std::vector<Case> all = {
        {"short read, whole pages", shortOf(kRead, 524288), 1, nullptr},
        {"short read, no multiple of a page", shortOf(kRead, 5000), 1, nullptr},
        {"short read, all but a byte", shortOf(kRead, (1 << 20) - 1), 1, nullptr},
        {"short write, whole pages", shortOf(kWrite, 524288), 1, nullptr},
        {"short write, no multiple of a page", shortOf(kWrite, 70001), 1, nullptr},
        {"short read below a page", shortOf(kRead, 4095), 0, "only 4095 bytes"},
        {"short write below a page", shortOf(kWrite, 1), 0, "only 1 bytes"},
        {"nothing read", result(kRead, 0), 0, "ends before it"},
        {"nothing written", result(kWrite, 0), 0, "ends before it"},
        {"busy, 8 times, read", result(kRead, -EAGAIN, 8), 8, nullptr},
        {"busy, 8 times, write", result(kWrite, -EAGAIN, 8), 8, nullptr},
        {"busy, 9 times", result(kRead, -EAGAIN, 9), 0, "too busy 9 times"},
        {"interrupted read", result(kRead, -EINTR, 20), 20, nullptr},
        {"interrupted write", result(kWrite, -EINTR, 20), 20, nullptr},
        {"read error, once", result(kRead, -EIO), 1, nullptr},
        {"read error, twice", result(kRead, -EIO, 2), 0, "smartctl"},
        {"no data, once", result(kRead, -ENODATA), 1, nullptr},
        {"no data, twice", result(kRead, -ENODATA, 2), 0, "smartctl"},
        {"remote error, twice", result(kRead, -EREMOTEIO, 2), 0, "smartctl"},
        {"write error", result(kWrite, -EIO), 0, "smartctl"},
        {"not aligned", result(kRead, -EINVAL), 0, "memory at 0x", ErrorKind::Internal},
        {"not registered", result(kWrite, -EFAULT), 0, "registered", ErrorKind::Internal},
        {"disk full", result(kWrite, -ENOSPC), 0, "is full"},
        {"anything else", result(kRead, -EPERM), 0, "refused"},
        {"more than asked for", result(kRead, 1 << 21), 0, "says that it moved",
            ErrorKind::Internal},
        {"lost write", {FaultKind::Lost, kWrite, 1, 0, 1}, 0, "not what was written",
            ErrorKind::DataCorrupt},
        {"misplaced write", {FaultKind::Misplaced, kWrite, 1, 1 << 20, 1}, 0,
            "not what was written", ErrorKind::DataCorrupt},
        {"flipped bit", {FaultKind::Flipped, kRead, 1, 0, 1}, 0, "not what was written",
            ErrorKind::DataCorrupt},
    };
    return all;
}

// Was there a request for the rest of a short one at byte `at` of tile 0, from a whole page on?
bool asksForTheRest(const DiskRig& rig, std::uint64_t at, const FaultRule& rule)
{
    const std::uint64_t whole = static_cast<std::uint64_t>(rule.value) / 4096 * 4096;
    return std::ranges::any_of(rig.faults.seen, [&](const DiskRequest& request) {
        return request.op == rule.op && request.offset == rig.layout.tiles[0].offset + at + whole &&
               request.bytes == kMiB - whole;
    });
}

bool contains(const Status& status, const std::string& word)
{
    return status.message().find(word) != std::string::npos;
}

} // namespace

class TestDiskFaults : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyFaultEndsInRightBytesOrAClearError_data()
    {
        QTest::addColumn<int>("index");
        QTest::addColumn<DiskEngine>("engine");
        const bool uring = uringIsThere();
        for (std::size_t i = 0; i < cases().size(); ++i) {
            QTest::addRow("%s, threads", cases()[i].name)
                << static_cast<int>(i) << DiskEngine::Threads;
            if (uring)
                QTest::addRow("%s, io_uring", cases()[i].name)
                    << static_cast<int>(i) << DiskEngine::Uring;
        }
    }

    void everyFaultEndsInRightBytesOrAClearError()
    {
        QFETCH(int, index);
        QFETCH(DiskEngine, engine);
        const Case& c = cases()[static_cast<std::size_t>(index)];
        DiskOptions options;
        options.engine = engine;
        DiskRig rig(options, {3 * kMiB, 2 * kMiB});
        rig.faults.rules = {c.rule};
        QVERIFY(rig.open().ok());

        const Status status = rig.roundTrip(0, 1);
        const auto retries = rig.store->stats().retries;
        rig.store.reset();

        QCOMPARE(rig.faults.inFlightAtEnd.load(), 0);
        if (!c.word) {
            QVERIFY2(status.ok(), status.message().c_str());
            QVERIFY(rig.holds(0, 1));
            QCOMPARE(retries, static_cast<std::uint64_t>(c.retries));
            if (c.rule.kind == FaultKind::Short)
                QVERIFY(asksForTheRest(rig, kMiB, c.rule));
            return;
        }
        QVERIFY(!status.ok());
        QVERIFY2(status.kind() == c.kind, status.message().c_str());
        QVERIFY2(contains(status, c.word), status.message().c_str());
        QVERIFY2(contains(status, "'t0'"), status.message().c_str());
        QVERIFY2(contains(status, "millrace-test-0.scratch"), status.message().c_str());
        QVERIFY2(contains(status, "at byte "), status.message().c_str());
        QVERIFY2(contains(status, "Resume from the last one"), status.message().c_str());
    }

    void afterAnErrorNothingStartsAndEveryGateOpens_data() { engineRows(); }
    void afterAnErrorNothingStartsAndEveryGateOpens()
    {
        QFETCH(DiskEngine, engine);
        DiskOptions options;
        options.engine = engine;
        options.writeBytesInFlight = kMiB;
        DiskRig rig(options, {4 * kMiB, kMiB, kMiB});
        rig.faults.rules = {{FaultKind::Result, DiskOp::Write, 1, -EIO, 1}};
        QVERIFY(rig.open().ok());

        rig.write(0, 1);
        rig.write(1, 1);
        rig.write(2, 1);

        QVERIFY(comesTrue([&] { return rig.gates[3]->isOpen(3); }));
        rig.write(1, 2); // late ones are answered as well
        QVERIFY(comesTrue([&] { return rig.gates[3]->isOpen(4); }));
        QCOMPARE(rig.wait(DiskQueue::Out).kind(), ErrorKind::Io);
        rig.store.reset();
        QCOMPARE(rig.faults.seen.size(), std::size_t{2}); // the first, and the one that failed
        QCOMPARE(rig.faults.inFlightAtEnd.load(), 0);
    }

    void aGateThatAFailureOpenedIsNoSuccess()
    {
        DiskRig rig({});
        QVERIFY(rig.open().ok());
        const FailingGate gate(rig.latch);
        const Status status = rig.store->waitFor(gate, 1);
        QVERIFY(!status.ok());
        QCOMPARE(status.kind(), ErrorKind::Io);
    }

    // The kernel may still write to the bytes of a request in flight: no gate opens before its end.
    void gatesStayShutUntilNothingIsInFlight()
    {
        DiskOptions options;
        options.engine = DiskEngine::Threads;
        DiskRig rig(options, {kMiB, kMiB, kMiB});
        QVERIFY(rig.open().ok());
        rig.faults.holdOffset = rig.layout.tiles[0].offset;
        rig.write(0, 1);
        QVERIFY(comesTrue([&] { return rig.faults.submitted == 1; }));
        rig.latch.fail(Status::error(ErrorKind::Internal, "elsewhere"));
        rig.write(1, 1);

        // Long enough for many rounds of the disk thread.
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
        while (std::chrono::steady_clock::now() < until)
            QVERIFY(!rig.gates[3]->isOpen(1));
        rig.faults.holdOffset = 0;

        QVERIFY(comesTrue([&] { return rig.gates[3]->isOpen(2); }));
        rig.store.reset();
        QCOMPARE(rig.faults.seen.size(), std::size_t{1});
    }

    void aMeansThatBreaksEndsTheRun()
    {
        DiskOptions options;
        options.engine = DiskEngine::Threads;
        DiskRig rig(options);
        rig.faults.rules = {{FaultKind::Broken, DiskOp::Write, kReap, -EBADR, 1}};
        QVERIFY(rig.open().ok());

        rig.write(0, 1);

        const Status status = rig.wait(DiskQueue::Out);
        QVERIFY(!status.ok());
        QVERIFY2(contains(status, "completions were lost"), status.message().c_str());
        QVERIFY(comesTrue([&] { return rig.gates[3]->isOpen(1); }));
    }

    // The first two generations of a tile are all verified, then one of 16.
    void verifyAllSeesWhatSamplingMayMiss_data()
    {
        QTest::addColumn<bool>("all");
        QTest::newRow("sampled") << false;
        QTest::newRow("all") << true;
    }
    void verifyAllSeesWhatSamplingMayMiss()
    {
        QFETCH(bool, all);
        DiskOptions options;
        options.engine = DiskEngine::Threads;
        options.verify = all ? DiskVerify::All : DiskVerify::Sampled;
        DiskRig rig(options, {kMiB});
        rig.faults.rules = {{FaultKind::Lost, DiskOp::Write, 2, 0, 1}}; // the third generation
        QVERIFY(rig.open().ok());

        QVERIFY(rig.roundTrip(0, 1).ok());
        QVERIFY(rig.roundTrip(0, 2).ok());
        const Status third = rig.roundTrip(0, 3);

        QCOMPARE(third.ok(), !all);
        QCOMPARE(rig.holds(0, 3), false);
        QCOMPARE(rig.store->stats().verifiedTiles, std::uint64_t(all ? 3 : 2));
    }

    void oneOfSixteenIsVerifiedAndEveryTileHasItsTurn()
    {
        for (int tile = 0; tile < 40; ++tile) {
            int verified = 0;
            for (std::uint64_t generation = 3; generation < 3 + 16; ++generation)
                verified += DiskTiles::isVerified(DiskVerify::Sampled, DiskTileId{tile}, generation)
                                ? 1
                                : 0;
            QCOMPARE(verified, 1);
            QVERIFY(DiskTiles::isVerified(DiskVerify::Sampled, DiskTileId{tile}, 1));
            QVERIFY(DiskTiles::isVerified(DiskVerify::Sampled, DiskTileId{tile}, 2));
        }
    }

    void aFileThatWasCutIsNamedAsTheCause()
    {
        DiskOptions options;
        options.engine = DiskEngine::Threads;
        DiskRig rig(options, {2 * kMiB});
        QVERIFY(rig.open().ok());
        QVERIFY(rig.roundTrip(0, 1).ok());

        std::filesystem::resize_file(
            rig.folder.path().toStdString() + "/millrace-test-0.scratch", 4096 + kMiB);
        rig.read(0);
        const Status status = rig.wait(DiskQueue::Weights);

        QVERIFY(!status.ok());
        QVERIFY2(contains(status, "while the run used it"), status.message().c_str());
        QVERIFY2(contains(status, "ends before it"), status.message().c_str());
        QVERIFY(!rig.store->checkFiles().ok());
    }
};

MR_TEST(TestDiskFaults)

} // namespace mr::test::tst_disk_faults

#include "tst_disk_faults.moc"
