#include "core/tier/disk_bench.h"

#include "core/base/bytes.h"
#include "core/device/cpu/cpu_device.h"
#include "core/tier/disk_bare.h"
#include "core/tier/disk_load.h"
#include "core/tier/disk_memory.h"
#include "core/tier/disk_store.h"
#include "core/tier/scratch_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

namespace mr {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostTileBytes = 16 * kMiB;
static_assert(kLeastDiskBenchBytes == 2 * kLeastDiskLoadTiles * kMiB);
constexpr int kMostDepth = 128;
constexpr double kGoodEnough = 0.97;     // share of the best rate, for fewer bytes in flight
constexpr double kMostTuneSeconds = 1.0; // limit for each setting

double median(std::vector<double> values)
{
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// Where the stretches end: filling, warming up; the rest is measuring.
constexpr double kFilled = 0.3;
constexpr double kWarm = 0.6;

struct Halves {
    DiskLayout layout;            // the store's tiles
    std::uint64_t bareOffset = 0; // where the bare loop's half begins
    std::uint64_t bareBytes = 0;
};

Result<Halves> halvesOf(std::uint64_t bytes)
{
    const std::uint64_t tileBytes =
        std::min(kMostTileBytes, bytes / 2 / kLeastDiskLoadTiles / kMiB * kMiB);
    if (tileBytes == 0)
        return Status::error(ErrorKind::InvalidArgument,
            "bench disk needs a file of at least " + formatBytes(kLeastDiskBenchBytes));
    const std::uint64_t tiles = bytes / 2 / tileBytes;
    const std::vector<DiskTileSpec> specs(tiles, {"bench", tileBytes});
    const std::array<double, 1> speed = {1.0};
    MR_ASSIGN(auto layout, layOutTiles(specs, speed));
    const std::uint64_t begin = layout.fileBytes[0];
    return Halves{std::move(layout), begin, tiles * tileBytes};
}

// A means of its own for the bare loop, of the kind the store chose.
std::unique_ptr<DiskIo> bareIo(
    int descriptor, bool uring, const std::vector<std::span<std::byte>>& memory)
{
    if (uring)
        if (UringOpening opening = openUring({descriptor}, memory); opening.io)
            return std::move(opening.io);
    return makeThreadIo({descriptor});
}

DiskBareSpec bareSpec(const Halves& halves, const DiskBenchSpec& spec, std::byte* memory)
{
    DiskBareSpec bare;
    bare.offset = halves.bareOffset;
    bare.bytes = halves.bareBytes;
    bare.requestBytes = spec.requestBytes;
    bare.depth = spec.depth;
    bare.memory = memory;
    return bare;
}

// The setting with the best mix; of those nearly as good the one with the fewest bytes in flight.
Status tune(DiskIo& io, const Halves& halves, DiskBenchSpec& spec, std::byte* memory)
{
    struct Tried {
        std::uint32_t requestBytes;
        int depth;
        double rate;
    };
    std::vector<Tried> tried;
    for (const std::uint32_t requestBytes : {1U << 18, 1U << 19, 1U << 20})
        for (const int depth : {8, 16, 32, 64}) {
            DiskBareSpec bare = bareSpec(halves, spec, memory);
            bare.requestBytes = requestBytes;
            bare.depth = depth;
            bare.seconds = std::min(kMostTuneSeconds, spec.seconds / 15.0);
            bare.mix = DiskMix::Mixed;
            MR_ASSIGN(auto sample, runBare(io, bare));
            tried.push_back({requestBytes, depth, sample.bytesPerSecond});
        }
    const double best = std::ranges::max_element(tried, {}, &Tried::rate)->rate;
    std::erase_if(tried, [best](const Tried& t) { return t.rate < kGoodEnough * best; });
    const auto least = std::ranges::min_element(
        tried, {}, [](const Tried& t) { return t.requestBytes * static_cast<unsigned>(t.depth); });
    spec.requestBytes = least->requestBytes;
    spec.depth = least->depth;
    return {};
}

constexpr std::array kMixes = {std::pair{DiskMix::Read, "read"}, std::pair{DiskMix::Write, "write"},
    std::pair{DiskMix::Mixed, "mixed"}};

// Ours and the limit, if it is asked for, take turns.
Status measure(DiskLoad& load, DiskIo& bare, const DiskBareSpec& bareSpec,
    const DiskBenchSpec& spec, DiskBenchWatch& watch, std::vector<DiskBenchRow>& rows)
{
    const int rounds = std::max(1, spec.rounds);
    const double samples = static_cast<double>(kMixes.size()) * rounds;
    const double seconds = spec.seconds / samples / (spec.limit ? 2.0 : 1.0);
    const double stretch = (1.0 - kWarm) / samples;
    double begin = kWarm;
    for (const auto& [mix, name] : kMixes) {
        std::array<std::vector<double>, 4> values;
        for (int round = 0; round < rounds; ++round) {
            watch.enter(begin, begin + stretch);
            begin += stretch;
            MR_ASSIGN(auto ours, load.sample(mix, seconds, watch));
            DiskBareSpec next = bareSpec;
            next.mix = mix;
            next.seconds = seconds;
            MR_ASSIGN(
                auto limit, spec.limit ? runBare(bare, next) : Result<DiskSample>(DiskSample{}));
            values[0].push_back(ours.bytesPerSecond);
            values[1].push_back(limit.bytesPerSecond);
            values[2].push_back(ours.cores);
            values[3].push_back(limit.cores);
        }
        rows.push_back(
            {name, median(values[0]), median(values[1]), median(values[2]), median(values[3])});
    }
    return {};
}

Status checkSpec(const DiskBenchSpec& spec)
{
    if (spec.depth < 1 || spec.depth > kMostDepth || spec.requestBytes < kDiskPageBytes ||
        spec.requestBytes > kDiskRequestBytes || spec.requestBytes % kDiskPageBytes != 0)
        return Status::error(ErrorKind::InvalidArgument,
            "bench disk: a depth of 1 to 128, requests of 4 KiB to 1 MiB in whole pages");
    auto folder = inspectScratchFolder(spec.folder);
    MR_TRY(folder.status());
    if (folder.value().freeBytes < spec.bytes) // before a layout of as many tiles is made
        return Status::error(
            ErrorKind::OutOfMemory, "bench disk: " + spec.folder.string() + " has " +
                                        formatBytes(folder.value().freeBytes) +
                                        " free, less than " + formatBytes(spec.bytes));
    return {};
}

Result<ScratchFile> openFile(
    const DiskBenchSpec& spec, const Halves& halves, const DiskBenchWatch& watch)
{
    ScratchOptions options;
    options.progress = [&watch](std::uint64_t done, std::uint64_t all) {
        watch.at(static_cast<double>(done) / static_cast<double>(all));
    };
    options.cancelled = [&watch] { return watch.cancelled(); };
    auto file = ScratchFile::open({spec.folder, fmt::format("bench-{}", ::getpid()), 0,
                                      halves.bareOffset + halves.bareBytes, halves.layout.hash()},
        options);
    if (file.ok())
        file.value().removeOnClose();
    return file;
}

Result<std::unique_ptr<DiskStore>> openStore(const DiskBenchSpec& spec, const Halves& halves,
    ScratchFile file, std::span<std::byte> tiles, FailureLatch& latch)
{
    DiskOptions options;
    options.engine = spec.engine;
    options.requestBytes = spec.requestBytes;
    options.readBytesInFlight = static_cast<std::uint64_t>(spec.depth) * spec.requestBytes;
    options.writeBytesInFlight = options.readBytesInFlight;
    options.memory = {tiles};
    DiskStore::Files files;
    files.scratch.push_back(std::move(file));
    return DiskStore::open(halves.layout, std::move(files), latch, options);
}

DiskBenchResult resultOf(
    std::vector<DiskBenchRow> rows, const DiskStore& store, const DiskBenchSpec& spec)
{
    DiskBenchResult result;
    result.rates = {rows[0].ours, rows[1].ours, rows[2].ours, store.engineName()};
    result.rows = std::move(rows);
    result.about = store.about();
    result.requestBytes = spec.requestBytes;
    result.depth = spec.depth;
    return result;
}

} // namespace

Result<DiskBenchResult> benchDisk(const DiskBenchSpec& wanted)
{
    DiskBenchSpec spec = wanted;
    MR_TRY(checkSpec(spec));
    MR_ASSIGN(auto halves, halvesOf(spec.bytes));
    DiskBenchWatch watch(wanted);
    watch.enter(0.0, kFilled);
    MR_ASSIGN(auto file, openFile(spec, halves, watch));
    const int descriptor = file.descriptor();
    const DiskMemory tiles(2 * kDiskLoadBuffers * kMostTileBytes);
    const DiskMemory blocks(std::uint64_t{2} * kMostDepth * kDiskRequestBytes);
    std::memset(tiles.data(), 0x5A, tiles.all().size());
    std::memset(blocks.data(), 0xA5, blocks.all().size());
    if (spec.tune) {
        const auto io = bareIo(descriptor, spec.engine != DiskEngine::Threads, {blocks.all()});
        MR_TRY(tune(*io, halves, spec, blocks.data()));
    }

    MR_ASSIGN(auto device, makeCpuDevice(CpuDeviceOptions{}));
    DiskLoadGates gates;
    for (auto& gate : gates) {
        MR_ASSIGN(gate, device->createGate("bench"));
    }
    FailureLatch latch;
    MR_ASSIGN(auto store, openStore(spec, halves, std::move(file), tiles.all(), latch));
    spec.requestBytes = store->requestBytes();
    const auto bare = bareIo(descriptor, store->engineName() == "io_uring", {blocks.all()});
    DiskLoad load(*store, gates, tiles.all());
    watch.enter(kFilled, kWarm);
    MR_TRY(load.warmUp(watch));
    std::vector<DiskBenchRow> rows;
    MR_TRY(measure(load, *bare, bareSpec(halves, spec, blocks.data()), spec, watch, rows));
    return resultOf(std::move(rows), *store, spec);
}

} // namespace mr
