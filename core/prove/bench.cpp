#include "core/prove/bench.h"

#include "core/prove/bench_limits.h"
#include "core/prove/bench_peaks.h"
#include "core/prove/bench_rig.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace mr {
namespace {

std::string mebibytes(std::size_t bytes)
{
    return fmt::format(" {} MiB", bytes >> 20);
}

// The memory of the copy benchmark, both ends twice: two directions at once must not share any.
// Copies of `bytes` walk through it, so that no cache of the host holds the next one.
struct CopyEnds {
    std::byte* host[2] = {};
    std::byte* inside[2] = {};
    std::size_t bytes = 0;
    std::size_t copies = 1;

    CopyEnds(BenchRig& rig, std::size_t most)
    {
        constexpr std::size_t kBeyondCaches = std::size_t{512} << 20;
        const std::size_t all = std::min(std::max(most, kBeyondCaches), rig.memoryBytes() / 8);
        bytes = std::min(most, all);
        copies = all / bytes;
        for (int i = 0; i < 2; ++i) {
            host[i] = rig.memory(all, MemoryKind::PinnedHost);
            inside[i] = rig.memory(all, MemoryKind::Device);
            if (host[i])
                std::memset(host[i], i + 1, all); // pages that are there
        }
    }

    std::size_t offset(int call) const { return static_cast<std::size_t>(call) % copies * bytes; }
    Status up(Stream& stream, int call) const
    {
        return stream.copy(inside[0] + offset(call), {host[0] + offset(call), bytes});
    }
    Status down(Stream& stream, int call) const
    {
        return stream.copy(host[1] + offset(call), {inside[1] + offset(call), bytes});
    }
    Status within(Stream& stream, int call) const
    {
        return stream.copy(inside[1] + offset(call), {inside[0] + offset(call), bytes});
    }
};

// Bytes per second of the link, each way, by copies as large as there is room for.
struct LinkRates {
    double up = 0.0;
    double down = 0.0;
};

Result<LinkRates> linkPeak(Device& device)
{
    constexpr std::size_t kLargest = std::size_t{1} << 30;
    BenchRig rig(device);
    if (rig.onHost()) // a copy is made by one thread of its stream; its bytes count twice
        return LinkRates{peakBytes(1), peakBytes(1)};
    const CopyEnds ends(rig, kLargest);
    const auto bytes = static_cast<double>(ends.bytes);
    LinkRates rates;
    rates.up = bytes / rig.time([&](int i) { return ends.up(rig.stream(), i); }).best;
    rates.down = bytes / rig.time([&](int i) { return ends.down(rig.stream(), i); }).best;
    MR_TRY(rig.status());
    return rates;
}

} // namespace

Result<std::vector<BenchRow>> benchCopy(Device& device)
{
    MR_ASSIGN(auto link, linkPeak(device));
    MR_ASSIGN(auto memory, memoryPeak(device));
    std::vector<BenchRow> rows;
    // A staging tile, and a tile of weights.
    for (const std::size_t most : {std::size_t{8} << 20, std::size_t{64} << 20}) {
        BenchRig rig(device);
        const CopyEnds ends(rig, most);
        const std::string size = mebibytes(ends.bytes);
        const double bytes = (rig.onHost() ? 2.0 : 1.0) * static_cast<double>(ends.bytes);
        const auto upload = [&](int i) { return ends.up(rig.stream(), i); };
        const auto download = [&](int i) { return ends.down(rig.stream(), i); };
        const auto downBeside = [&](int i) { return ends.down(rig.secondStream(), i); };
        const auto copyWithin = [&](int i) { return ends.within(rig.stream(), i); };
        const double up = rig.time(upload).median;
        const double down = rig.time(download).median;
        const double both = rig.timeBoth(upload, downBeside).median;
        const double inside = rig.time(copyWithin).median;
        MR_TRY(rig.status());
        const LinkRates& rates = link;
        rows.push_back(benchRow("copy host to device" + size, bytes, up, rates.up, "GB/s"));
        rows.push_back(benchRow("copy device to host" + size, bytes, down, rates.down, "GB/s"));
        rows.push_back(benchRow(
            "copy both ways at once" + size, 2.0 * bytes, both, rates.up + rates.down, "GB/s"));
        rows.push_back(benchRow("copy inside the device" + size,
            2.0 * static_cast<double>(ends.bytes), inside, memory, "GB/s"));
    }
    return rows;
}

Result<std::vector<BenchRow>> benchAdamw(Device& device)
{
    BenchRig rig(device);
    const std::int64_t most = std::int64_t{1} << (rig.onHost() ? 23 : 27);
    const std::int64_t fits = static_cast<std::int64_t>(rig.memoryBytes() / 64);
    const std::int64_t count = std::min(most, fits) & ~std::int64_t{1023};
    AdamwArgs args;
    args.high = rig.randomVector(DType::U16, count);
    args.low = rig.randomVector(DType::I16, count);
    args.m = rig.randomVector(DType::F32, count);
    args.v = rig.randomVector(DType::F32, count, 0.0F, 1.0F);
    args.grad = rig.randomVector(DType::BF16, count);
    const StepScalars scalars;
    const TensorView given = rig.given(DType::U8, 1, sizeof(StepScalars), &scalars);
    args.scalars = vectorView(given.data, DType::U8, sizeof(StepScalars));
    args.factors.stepSize = 1e-5F;
    MR_TRY(rig.status());
    MR_ASSIGN(auto limit, memoryPeak(device));
    const BenchTime time = rig.time([&](int) { return rig.ops().adamw(args, rig.stream()); });
    MR_TRY(rig.status());
    const std::string name = fmt::format("adamw bf16 gradients {} Ki parameters", count >> 10);
    return std::vector<BenchRow>{
        benchRow(name, 26.0 * static_cast<double>(count), time.median, limit, "GB/s")};
}

} // namespace mr
