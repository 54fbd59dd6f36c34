// A DiskStore on small files in a temporary folder, for the tests of it.

#pragma once

#include "core/device/cpu/cpu_device.h"
#include "core/tier/disk_memory.h"
#include "core/tier/disk_store.h"
#include "core/tier/faulty_io.h"

#include <QTemporaryDir>
#include <QtTest>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace mr::test {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

inline std::unique_ptr<Device> cpuDevice(
    CpuDeviceOptions::Mode mode = CpuDeviceOptions::Mode::Inline)
{
    CpuDeviceOptions options;
    options.mode = mode;
    return std::move(makeCpuDevice(options)).value();
}

// Until `done`, or for 20 seconds.
template <typename Done>
bool comesTrue(Done done)
{
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
        if (std::chrono::steady_clock::now() > until)
            return false;
        std::this_thread::yield();
    }
    return true;
}

inline bool uringIsThere()
{
    static const std::string refused = [] {
        const UringOpening opening = openUring({0}, {});
        return opening.io ? std::string() : opening.words;
    }();
    if (!refused.empty())
        qInfo("left out, and so passed: %s", refused.c_str());
    return refused.empty();
}

// One row for each engine this machine grants.
inline void engineRows()
{
    QTest::addColumn<DiskEngine>("engine");
    QTest::newRow("threads") << DiskEngine::Threads;
    if (uringIsThere())
        QTest::newRow("io_uring") << DiskEngine::Uring;
}

// Bytes that differ from tile to tile and from generation to generation.
inline void fillTile(std::span<std::byte> memory, int tile, int generation)
{
    for (std::size_t i = 0; i < memory.size(); i += 8) {
        const std::uint64_t word =
            (i + 1) * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(tile * 1000 + generation);
        std::memcpy(memory.data() + i, &word, std::min<std::size_t>(8, memory.size() - i));
    }
}

inline bool holdsTile(std::span<const std::byte> memory, int tile, int generation)
{
    std::vector<std::byte> expected(memory.size());
    fillTile(expected, tile, generation);
    return std::memcmp(memory.data(), expected.data(), expected.size()) == 0;
}

struct DiskRig {
    explicit DiskRig(DiskOptions wanted, std::vector<std::uint64_t> tileBytes = {kMiB, kMiB},
        std::size_t fileCount = 1)
        : device(cpuDevice())
        , options(std::move(wanted))
    {
        std::vector<DiskTileSpec> tiles;
        for (std::size_t i = 0; i < tileBytes.size(); ++i)
            tiles.push_back({"t" + std::to_string(i), tileBytes[i]});
        layout = layOutTiles(tiles, std::vector<double>(fileCount, 1.0)).value();
        for (const std::uint64_t bytes : tileBytes)
            memory.emplace_back(diskPadded(bytes));
        for (std::size_t queue = 0; queue < kDiskQueues; ++queue)
            gates.push_back(std::move(device->createGate("q")).value());
        key = std::move(device->createGate("key")).value();
        options.wrapIo = [this](std::unique_ptr<DiskIo> io) {
            return std::unique_ptr<DiskIo>(std::make_unique<FaultyIo>(std::move(io), faults));
        };
    }

    Status open()
    {
        DiskStore::Files files;
        const std::size_t others = other.empty() ? 0 : 1;
        for (std::size_t i = 0; i < layout.fileBytes.size() - others; ++i) {
            auto file = ScratchFile::open({folder.path().toStdString(), "test", static_cast<int>(i),
                layout.fileBytes[i], layout.hash()});
            MR_TRY(file.status());
            files.scratch.push_back(std::move(file).value());
        }
        if (others > 0) {
            auto file = DiskFile::openToRead(otherPath());
            MR_TRY(file.status());
            files.others.push_back(std::move(file).value());
        }
        auto opened = DiskStore::open(layout, std::move(files), latch, options);
        MR_TRY(opened.status());
        store = std::move(opened).value();
        return {};
    }

    std::filesystem::path otherPath() const
    {
        return std::filesystem::path(folder.path().toStdString()) / "other";
    }
    void writeOther() const
    {
        std::ofstream out(otherPath(), std::ios::binary);
        out.write(reinterpret_cast<const char*>(other.data()),
            static_cast<std::streamsize>(other.size()));
    }
    // The tile is what `other` has from `offset` on, in a file of its own.
    void putOther(int tile, std::uint64_t offset)
    {
        DiskTile& its = layout.tiles[static_cast<std::size_t>(tile)];
        its.bytes = other.size() - offset;
        its.file = static_cast<int>(layout.fileBytes.size());
        its.offset = offset;
        its.isReadOnly = true;
        layout.fileBytes.push_back(other.size());
        writeOther();
    }

    DiskJob job(DiskOp op, DiskQueue queue, int tile)
    {
        const auto q = static_cast<std::size_t>(queue);
        DiskJob job;
        job.op = op;
        job.queue = queue;
        job.tile = DiskTileId{tile};
        job.memory = memory[static_cast<std::size_t>(tile)].all();
        job.gate = gates[q].get();
        job.generation = ++generations[q];
        return job;
    }

    void write(int tile, int generation)
    {
        const auto t = static_cast<std::size_t>(tile);
        fillTile(memory[t].all().first(layout.tiles[t].bytes), tile, generation);
        store->submit(job(DiskOp::Write, DiskQueue::Out, tile));
    }
    void read(int tile)
    {
        std::memset(memory[static_cast<std::size_t>(tile)].data(), 0,
            memory[static_cast<std::size_t>(tile)].all().size());
        store->submit(job(DiskOp::Read, DiskQueue::Weights, tile));
    }
    // For all that was submitted to the queue.
    Status wait(DiskQueue queue)
    {
        const auto q = static_cast<std::size_t>(queue);
        return store->waitFor(*gates[q], generations[q]);
    }
    // Writes a tile, waits, reads it, waits.
    Status roundTrip(int tile, int generation)
    {
        write(tile, generation);
        MR_TRY(wait(DiskQueue::Out));
        read(tile);
        return wait(DiskQueue::Weights);
    }
    bool holds(int tile, int generation) const
    {
        const auto t = static_cast<std::size_t>(tile);
        return holdsTile(memory[t].all().first(layout.tiles[t].bytes), tile, generation);
    }

    QTemporaryDir folder;
    std::unique_ptr<Device> device;
    DiskOptions options;
    DiskFaults faults;
    FailureLatch latch;
    DiskLayout layout;
    std::vector<std::byte> other;             // somebody else's file; empty: there is none
    std::vector<DiskMemory> memory;           // by tile
    std::vector<std::unique_ptr<Gate>> gates; // by queue
    std::unique_ptr<Gate> key;                // the gate a test makes jobs wait for
    std::array<std::uint64_t, kDiskQueues> generations{};
    std::unique_ptr<DiskStore> store; // last: it uses everything above
};

} // namespace mr::test

Q_DECLARE_METATYPE(mr::DiskEngine)
