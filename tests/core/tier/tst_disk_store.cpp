// DiskStore: queues in order, urgent ones first, budgets, waits, overlaps, and no allocation.

#include "core/device/cpu/cpu_stream.h"
#include "core/tier/disk_rig.h"
#include "support/heap_counter.h"
#include "support/test_room.h"

namespace mr::test::tst_disk_store {

namespace {

DiskOptions with(DiskEngine engine)
{
    DiskOptions options;
    options.engine = engine;
    return options;
}

// The first request of each job, as tile numbers.
std::vector<int> orderOfTiles(const DiskRig& rig)
{
    std::vector<int> order;
    for (const DiskRequest& request : rig.faults.seen)
        for (std::size_t i = 0; i < rig.layout.tiles.size(); ++i)
            if (rig.layout.tiles[i].offset == request.offset &&
                rig.layout.tiles[i].file == request.file)
                order.push_back(static_cast<int>(i));
    return order;
}

} // namespace

class TestDiskStore : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void tilesOfAnySizeComeBackAsTheyWere_data() { engineRows(); }
    void tilesOfAnySizeComeBackAsTheyWere()
    {
        QFETCH(DiskEngine, engine);
        DiskRig rig(with(engine), {1, 4095, 4096, 4097, kMiB, kMiB + 1, 5 * kMiB + 12345}, 2);
        DiskTimes times;
        for (const DiskMemory& memory : rig.memory)
            rig.options.memory.push_back(memory.all());
        const Status opened = rig.open();
        QVERIFY2(opened.ok(), opened.message().c_str());
        const int count = static_cast<int>(rig.layout.tiles.size());

        for (int generation = 1; generation <= 3; ++generation) {
            for (int tile = 0; tile < count; ++tile)
                rig.write(tile, generation);
            QVERIFY(rig.wait(DiskQueue::Out).ok());
            for (int tile = 0; tile < count; ++tile)
                rig.read(tile);
            DiskJob last = rig.job(DiskOp::Read, DiskQueue::StateIn, 0);
            last.afterGate = rig.gates[0].get();
            last.afterGeneration = rig.generations[0];
            last.times = &times;
            rig.store->submit(last);
            const Status status = rig.wait(DiskQueue::StateIn);
            QVERIFY2(status.ok(), status.message().c_str());
            for (int tile = 0; tile < count; ++tile)
                QVERIFY(rig.holds(tile, generation));
        }

        std::uint64_t padded = 0;
        for (const DiskTile& tile : rig.layout.tiles)
            padded += diskPadded(tile.bytes);
        const DiskStats stats = rig.store->stats();
        QCOMPARE(stats.bytesWritten[3], 3 * padded);
        QCOMPARE(stats.bytesRead[0], 3 * padded);
        QCOMPARE(stats.bytesRead[2], 3 * std::uint64_t{4096});
        QCOMPARE(stats.retries, std::uint64_t{0});
        QVERIFY(stats.busyNs > 0);
        QVERIFY(stats.verifiedTiles > 0);
        QVERIFY(times.beginNs > 0 && times.beginNs <= times.endNs);
        QVERIFY(rig.store->about().find(engine == DiskEngine::Uring ? "io_uring" : "threads") !=
                std::string::npos);
    }

    void gatesOfAQueueOpenInOrderThoughTilesFinishInAnother_data() { engineRows(); }
    void gatesOfAQueueOpenInOrderThoughTilesFinishInAnother()
    {
        QFETCH(DiskEngine, engine);
        DiskRig rig(with(engine));
        QVERIFY(rig.open().ok());
        rig.faults.holdOffset = rig.layout.tiles[0].offset;

        rig.write(0, 1);
        rig.write(1, 1);

        QVERIFY(comesTrue([&] { return rig.store->stats().bytesWritten[3] == kMiB; }));
        QVERIFY(!rig.gates[3]->isOpen(1));
        rig.faults.holdOffset = 0;
        QVERIFY(rig.wait(DiskQueue::Out).ok());
    }

    // Everything is submitted while one read fills the budget; then places go by urgency.
    void urgentQueuesGoFirst_data() { engineRows(); }
    void urgentQueuesGoFirst()
    {
        QFETCH(DiskEngine, engine);
        DiskOptions options = with(engine);
        options.readBytesInFlight = kMiB;
        DiskRig rig(options, std::vector<std::uint64_t>(8, kMiB));
        QVERIFY(rig.open().ok());
        for (int tile = 0; tile < 8; ++tile)
            rig.write(tile, 1);
        QVERIFY(rig.wait(DiskQueue::Out).ok());
        rig.faults.hold = true;
        const std::uint64_t before = rig.faults.submitted;

        rig.read(0);
        QVERIFY(comesTrue([&] { return rig.faults.submitted == before + 1; }));
        for (const int tile : {1, 2})
            rig.store->submit(rig.job(DiskOp::Read, DiskQueue::StateIn, tile));
        for (const int tile : {3, 4})
            rig.store->submit(rig.job(DiskOp::Read, DiskQueue::Boundaries, tile));
        for (const int tile : {5, 6})
            rig.store->submit(rig.job(DiskOp::Read, DiskQueue::Weights, tile));
        rig.faults.hold = false;

        QVERIFY(rig.wait(DiskQueue::StateIn).ok());
        rig.store.reset();
        const std::vector<int> order = orderOfTiles(rig);
        const std::vector<int> reads(order.begin() + 8, order.end());
        QCOMPARE(reads, (std::vector<int>{0, 5, 6, 3, 4, 1, 2}));
    }

    // A burst of writes that nobody answers does not keep a read from coming home.
    void readsAndWritesHaveBudgetsOfTheirOwn_data() { engineRows(); }
    void readsAndWritesHaveBudgetsOfTheirOwn()
    {
        QFETCH(DiskEngine, engine);
        DiskOptions options = with(engine);
        options.readBytesInFlight = 2 * kMiB;
        options.writeBytesInFlight = 3 * kMiB;
        DiskRig rig(options, {8 * kMiB, 8 * kMiB});
        QVERIFY(rig.open().ok());
        QVERIFY(rig.roundTrip(0, 1).ok());
        QCOMPARE(rig.faults.mostBytes[1].load(), 3 * kMiB);
        rig.faults.holdOffset = rig.layout.tiles[1].offset; // the first of the budget stays away

        rig.write(1, 1);
        rig.read(0);

        QVERIFY(rig.wait(DiskQueue::Weights).ok());
        QVERIFY(!rig.gates[3]->isOpen(2));
        rig.faults.holdOffset = 0;
        QVERIFY(rig.wait(DiskQueue::Out).ok());
        QCOMPARE(rig.faults.mostBytes[0].load(), 2 * kMiB);
        QCOMPARE(rig.faults.mostBytes[1].load(), 3 * kMiB);
        QVERIFY(rig.store->stats().mostInFlightBytes <= 5 * kMiB);
        QVERIFY(rig.store->stats().mostInFlightBytes >= 3 * kMiB);
    }

    // Tiles take turns over two files: the second is kept busy while the first is full.
    void everyFileIsKeptBusy()
    {
        DiskOptions options = with(DiskEngine::Threads);
        options.writeBytesInFlight = kMiB;
        DiskRig rig(options, {4 * kMiB, 4 * kMiB, 4 * kMiB}, 2);
        QVERIFY(rig.open().ok());
        rig.faults.hold = true;

        for (const int tile : {0, 1, 2})
            rig.write(tile, 1);

        QVERIFY(comesTrue([&] { return rig.faults.submitted == 2; }));
        rig.faults.hold = false;
        QVERIFY(rig.wait(DiskQueue::Out).ok());
        rig.store.reset();
        QCOMPARE(rig.faults.seen[0].file, 0);
        QCOMPARE(rig.faults.seen[1].file, 1);
        QCOMPARE(orderOfTiles(rig), (std::vector<int>{0, 1, 2}));
    }

    // A job that may not begin keeps those behind it in its queue, and no other queue.
    void jobsWaitForTheirGate_data() { engineRows(); }
    void jobsWaitForTheirGate()
    {
        QFETCH(DiskEngine, engine);
        DiskRig rig(with(engine), {kMiB, kMiB, kMiB});
        QVERIFY(rig.open().ok());
        fillTile(rig.memory[0].all(), 0, 1);
        DiskJob first = rig.job(DiskOp::Write, DiskQueue::Out, 0);
        first.afterGate = rig.key.get();
        first.afterGeneration = 7;
        rig.store->submit(first);
        rig.write(1, 1);
        fillTile(rig.memory[2].all(), 2, 1);
        rig.store->submit(rig.job(DiskOp::Write, DiskQueue::Boundaries, 2));

        QVERIFY(rig.wait(DiskQueue::Boundaries).ok());
        QCOMPARE(rig.faults.submitted.load(), std::uint64_t{1});
        rig.key->open(6);
        QVERIFY(!rig.gates[3]->isOpen(1));
        rig.key->open(7);

        QVERIFY(rig.wait(DiskQueue::Out).ok());
        rig.store.reset();
        QCOMPARE(orderOfTiles(rig), (std::vector<int>{2, 0, 1}));
    }

    void aJobThatWaitsForItsEventKeepsNoOtherQueue()
    {
        const auto cpu = cpuDevice(CpuDeviceOptions::Mode::Threaded);
        const auto stream = std::move(cpu->createStream("out")).value();
        const auto event = std::move(cpu->createEvent()).value();
        DiskRig rig(with(DiskEngine::Threads));
        QVERIFY(rig.open().ok());
        std::atomic<bool> go = false;
        QVERIFY(static_cast<CpuStream&>(*stream).enqueue([&go] { go.wait(false); }).ok());
        QVERIFY(stream->record(*event).ok());
        cpu->submit();
        DiskJob waiting = rig.job(DiskOp::Write, DiskQueue::Weights, 0);
        waiting.after = event.get();

        rig.store->submit(waiting);
        rig.write(1, 1);
        const bool passed = comesTrue([&] { return rig.gates[3]->isOpen(1); });
        const bool tooEarly = rig.gates[0]->isOpen(1);
        go = true;
        go.notify_all();

        QVERIFY(passed && !tooEarly);
        QVERIFY(rig.wait(DiskQueue::Weights).ok());
    }

    // The whole round: bytes are made on a stream, the write waits for their event, the read for
    // the write's gate, another stream for the read's. A missing edge is a race for
    // ThreadSanitizer.
    void jobsWaitForTheirEventAndStreamsForTheGate_data() { engineRows(); }
    void jobsWaitForTheirEventAndStreamsForTheGate()
    {
        QFETCH(DiskEngine, engine);
        const auto cpu = cpuDevice(CpuDeviceOptions::Mode::Threaded);
        const auto out = std::move(cpu->createStream("out")).value();
        const auto in = std::move(cpu->createStream("in")).value();
        const auto written = std::move(cpu->createGate("written")).value();
        const auto there = std::move(cpu->createGate("there")).value();
        const auto made = std::move(cpu->createEvent()).value();
        const auto seen = std::move(cpu->createEvent()).value();
        DiskRig rig(with(engine), {64 * 1024});
        QVERIFY(rig.open().ok());
        const DiskMemory target(64 * 1024);
        auto& closuresOut = static_cast<CpuStream&>(*out);
        auto& closuresIn = static_cast<CpuStream&>(*in);
        bool same = false;

        for (std::uint64_t step = 1; step <= 20; ++step) {
            const int generation = static_cast<int>(step);
            const std::span<std::byte> source = rig.memory[0].all();
            QVERIFY(out->waitFor(*written, step - 1).ok());
            QVERIFY(closuresOut.enqueue([=] { fillTile(source, 0, generation); }).ok());
            QVERIFY(out->record(*made).ok());
            DiskJob write = rig.job(DiskOp::Write, DiskQueue::Out, 0);
            write.after = made.get();
            write.gate = written.get();
            write.generation = step;
            rig.store->submit(write);
            DiskJob read = rig.job(DiskOp::Read, DiskQueue::Weights, 0);
            read.memory = target.all();
            read.afterGate = written.get();
            read.afterGeneration = step;
            read.gate = there.get();
            read.generation = step;
            rig.store->submit(read);
            QVERIFY(in->waitFor(*there, step).ok());
            const std::span<std::byte> copy = target.all();
            QVERIFY(closuresIn.enqueue([=, &same] { same = holdsTile(copy, 0, generation); }).ok());
            QVERIFY(in->record(*seen).ok());
            cpu->submit();
            QVERIFY(seen->wait().ok());
            QVERIFY2(same, rig.latch.status().message().c_str());
        }
        rig.store.reset();
    }

    void anEventThatFailsReachesTheLatchAndNothingIsMoved()
    {
        const auto cpu = cpuDevice(CpuDeviceOptions::Mode::Threaded);
        const auto stream = std::move(cpu->createStream("out")).value();
        const auto event = std::move(cpu->createEvent()).value();
        DiskRig rig(with(DiskEngine::Threads));
        QVERIFY(rig.open().ok());
        QVERIFY(static_cast<CpuStream&>(*stream)
                    .enqueue([] { return Status::error(ErrorKind::Internal, "lost"); })
                    .ok());
        QVERIFY(stream->record(*event).ok());
        cpu->submit();
        DiskJob job = rig.job(DiskOp::Write, DiskQueue::Out, 0);
        job.after = event.get();

        rig.store->submit(job);

        QCOMPARE(rig.wait(DiskQueue::Out).kind(), ErrorKind::DeviceLost);
        rig.store.reset();
        QVERIFY(rig.gates[3]->isOpen(1));
        QVERIFY(rig.faults.seen.empty());
    }

    void overlapsAndReadsOfNothingAreErrors_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("word");
        QTest::newRow("read never written") << "r0"
                                            << "never written";
        QTest::newRow("read while written") << "w0 r0"
                                            << "being written";
        QTest::newRow("write while written") << "w0 b0"
                                             << "being written";
        QTest::newRow("write while read") << "w0 . r0 w0"
                                          << "being read";
        QTest::newRow("no such tile") << "r7"
                                      << "of which there are";
        QTest::newRow("memory too short") << "s0"
                                          << "too short";
        QTest::newRow("memory not aligned") << "a0"
                                            << "not aligned";
    }
    void overlapsAndReadsOfNothingAreErrors()
    {
        QFETCH(QString, what);
        QFETCH(QString, word);
        DiskRig rig(with(DiskEngine::Threads));
        QVERIFY(rig.open().ok());

        const QStringList words = what.split(QLatin1Char(' '));
        for (const QString& step : words) {
            const bool ofNothing = step == QLatin1String("r7");
            DiskJob job = step[0] == QLatin1Char('r') ? rig.job(DiskOp::Read, DiskQueue::Weights, 0)
                          : step[0] == QLatin1Char('b')
                              ? rig.job(DiskOp::Write, DiskQueue::Boundaries, 0)
                              : rig.job(DiskOp::Write, DiskQueue::Out, 0);
            if (ofNothing)
                job.tile = DiskTileId{7};
            if (step[0] == QLatin1Char('s'))
                job.memory = job.memory.first(kMiB - 4096);
            if (step[0] == QLatin1Char('a'))
                job.memory = std::span(job.memory.data() + 512, kMiB);
            if (step == QLatin1String(".")) {
                --rig.generations[3];
                QVERIFY(rig.wait(DiskQueue::Out).ok());
                rig.faults.hold = true;
                continue;
            }
            const std::uint64_t before = rig.faults.submitted;
            if (words.size() == 2)
                rig.faults.hold = true;
            rig.store->submit(job);
            if (step != words.last())
                QVERIFY(comesTrue([&] { return rig.faults.submitted > before; }));
        }
        QVERIFY(comesTrue([&] { return rig.latch.failed(); }));
        rig.faults.hold = false;

        const Status status = rig.latch.status();
        QCOMPARE(status.kind(), ErrorKind::Internal);
        QVERIFY2(status.message().find(word.toStdString()) != std::string::npos,
            status.message().c_str());
        rig.store.reset();
    }

    void aTileWhoseWriteFailedIsLost()
    {
        DiskLayout layout =
            std::move(layOutTiles(std::vector<DiskTileSpec>{{"a", 4096}}, std::vector<double>{1.0}))
                .value();
        const DiskNames names{&layout, {"/x/f"}};
        DiskTiles tiles(names, DiskVerify::Sampled);
        bool hashed = false;
        QVERIFY(tiles.beginWrite(DiskTileId{0}, hashed).ok());

        tiles.poison(DiskTileId{0});
        const Status status = tiles.beginRead(DiskTileId{0}, hashed);

        QCOMPARE(status.kind(), ErrorKind::Io);
        QVERIFY(status.message().find("tile 'a'") != std::string::npos);
        QVERIFY(status.message().find("/x/f") != std::string::npos);
        QVERIFY(tiles.beginWrite(DiskTileId{0}, hashed).ok()); // may be written anew
        tiles.endWrite(DiskTileId{0}, true, 5);
        QVERIFY(tiles.beginRead(DiskTileId{0}, hashed).ok());
        QCOMPARE(tiles.generation(DiskTileId{0}), std::uint64_t{2});
    }

    // A tile that begins within the file and ends with it, where no page ends.
    void aFileOfSomebodyElseIsReadToItsEndAndLeftAlone_data() { engineRows(); }
    void aFileOfSomebodyElseIsReadToItsEndAndLeftAlone()
    {
        QFETCH(DiskEngine, engine);
        DiskRig rig(with(engine), {kMiB, 2 * kMiB});
        rig.other.resize(2 * kMiB - 1000 + 4096);
        fillTile(rig.other, 7, 1);
        rig.putOther(1, 4096);
        QVERIFY2(rig.open().ok(), rig.latch.status().message().c_str());
        QVERIFY(rig.roundTrip(0, 1).ok());
        const auto before = std::filesystem::last_write_time(rig.otherPath());

        rig.read(1);

        const Status read = rig.wait(DiskQueue::Weights);
        QVERIFY2(read.ok(), read.message().c_str());
        QVERIFY(std::memcmp(rig.memory[1].data(), rig.other.data() + 4096, 2 * kMiB - 1000) == 0);
        QVERIFY(std::filesystem::last_write_time(rig.otherPath()) == before);
        QVERIFY(rig.store->checkFiles().ok());
        rig.write(1, 2);
        QVERIFY(comesTrue([&] { return rig.latch.failed(); }));
        QVERIFY2(rig.latch.status().message().find("is to be read alone") != std::string::npos,
            rig.latch.status().message().c_str());
        rig.store.reset();
    }

    void aChangeOfSomebodyElsesFileIsNoticed_data() { engineRows(); }
    void aChangeOfSomebodyElsesFileIsNoticed()
    {
        QFETCH(DiskEngine, engine);
        DiskRig rig(with(engine), {kMiB, kMiB});
        rig.other.resize(kMiB);
        rig.putOther(1, 0);
        QVERIFY2(rig.open().ok(), rig.latch.status().message().c_str());
        for (int i = 0; i < 2; ++i) {
            rig.read(1);
            QVERIFY(rig.wait(DiskQueue::Weights).ok());
        }
        rig.other[kMiB - 1] = std::byte{1};
        rig.writeOther();
        QVERIFY(!rig.store->checkFiles().ok());

        for (int i = 0; i < 16 && !rig.latch.failed(); ++i) { // one of 16 is compared
            rig.read(1);
            (void)rig.wait(DiskQueue::Weights).ok();
        }

        QCOMPARE(rig.latch.status().kind(), ErrorKind::DataCorrupt);
        QVERIFY2(
            rig.latch.status().message().find("not what was there before") != std::string::npos,
            rig.latch.status().message().c_str());
        rig.store.reset();
    }

    void theDestructorFinishesWhatWasSubmitted_data() { engineRows(); }
    void theDestructorFinishesWhatWasSubmitted()
    {
        QFETCH(DiskEngine, engine);
        DiskRig rig(with(engine), std::vector<std::uint64_t>(6, 2 * kMiB));
        QVERIFY(rig.open().ok());
        for (int tile = 0; tile < 6; ++tile)
            rig.write(tile, 1);

        rig.store.reset();

        QVERIFY(rig.gates[3]->isOpen(6));
        QVERIFY(!rig.latch.failed());
        QCOMPARE(rig.faults.seen.size(), std::size_t{12});
    }

    void submittingAllocatesNothing_data() { engineRows(); }
    void submittingAllocatesNothing()
    {
        QFETCH(DiskEngine, engine);
        DiskRig rig(with(engine), {4096, 8192, 2 * kMiB});
        rig.options.wrapIo = {};
        QVERIFY(rig.open().ok());
        bool ok = rig.roundTrip(0, 1).ok() && rig.roundTrip(1, 1).ok() && rig.roundTrip(2, 1).ok();
        const std::uint64_t before = heapCountsOfAllThreads().ours;

        // More than a ring holds, so submit() blocks as well.
        for (std::uint32_t i = 0; i < DiskJobRing::kMostJobs + 100; ++i) {
            DiskJob write = rig.job(DiskOp::Write, DiskQueue::Out, 0);
            write.afterGate = rig.gates[3].get(); // one tile: each write after the one before
            write.afterGeneration = write.generation - 1;
            rig.store->submit(write);
        }
        ok = ok && rig.wait(DiskQueue::Out).ok();
        for (int i = 0; i < 3; ++i) {
            rig.store->submit(rig.job(DiskOp::Read, DiskQueue::StateIn, 2));
            ok = ok && rig.wait(DiskQueue::StateIn).ok();
        }

        const std::uint64_t after = heapCountsOfAllThreads().ours;
        QVERIFY2(ok, rig.latch.status().message().c_str());
        QCOMPARE(after - before, std::uint64_t{0});
    }

    void filesThatDoNotFitTheLayoutAreRefused()
    {
        DiskRig rig(with(DiskEngine::Threads));
        rig.layout.fileBytes[0] += 0;
        auto file = ScratchFile::open({rig.folder.path().toStdString(), "small", 0, 8192, 0});
        QVERIFY(file.ok());
        DiskStore::Files files;
        files.scratch.push_back(std::move(file).value());

        const auto store = DiskStore::open(rig.layout, std::move(files), rig.latch, {});

        QVERIFY(!store.ok());
        QCOMPARE(store.status().kind(), ErrorKind::Internal);
    }
};

MR_TEST(TestDiskStore)

} // namespace mr::test::tst_disk_store

#include "tst_disk_store.moc"
