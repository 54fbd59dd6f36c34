#include "core/tier/disk_bare.h"

#include "core/base/clock.h"
#include "core/tier/disk_verdict.h"

#include <array>
#include <ctime>
#include <vector>

namespace mr {
namespace {

// One direction: its share of the stretch, walked round and round.
struct BareLane {
    DiskOp op = DiskOp::Read;
    std::uint64_t first = 0;
    std::uint64_t blocks = 0;
    std::uint64_t next = 0;
    std::byte* memory = nullptr;
};

// Slots of a lane are tags: lane * depth + slot.
bool send(DiskIo& io, const DiskBareSpec& spec, BareLane& lane, std::uint64_t tag, int slot)
{
    const std::uint64_t block = lane.next++ % lane.blocks;
    return io.submit({lane.op, 0, lane.first + block * spec.requestBytes,
        lane.memory + static_cast<std::size_t>(slot) * spec.requestBytes, spec.requestBytes, tag});
}

std::vector<BareLane> lanesOf(const DiskBareSpec& spec)
{
    const std::uint64_t blocks = spec.bytes / spec.requestBytes;
    if (spec.mix != DiskMix::Mixed)
        return {{spec.mix == DiskMix::Read ? DiskOp::Read : DiskOp::Write, spec.offset, blocks, 0,
            spec.memory}};
    const std::uint64_t half = blocks / 2;
    const auto bytes = static_cast<std::size_t>(spec.depth) * spec.requestBytes;
    return {{DiskOp::Read, spec.offset, half, 0, spec.memory},
        {DiskOp::Write, spec.offset + half * spec.requestBytes, half, 0, spec.memory + bytes}};
}

} // namespace

double processorSeconds()
{
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Result<DiskSample> runBare(DiskIo& io, const DiskBareSpec& spec)
{
    std::vector<BareLane> lanes = lanesOf(spec);
    const double processorBegin = processorSeconds();
    const std::int64_t begin = nowNs();
    const std::int64_t until = begin + static_cast<std::int64_t>(1e9 * spec.seconds);
    const auto depth = static_cast<std::uint64_t>(spec.depth);
    std::uint64_t inFlight = 0;
    std::uint64_t done = 0;
    std::int64_t failed = 0;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
        for (int slot = 0; slot < spec.depth; ++slot)
            inFlight +=
                send(io, spec, lanes[lane], lane * depth + static_cast<unsigned>(slot), slot) ? 1
                                                                                              : 0;
    std::array<DiskCompletion, 64> got;
    while (inFlight > 0) {
        const int count = io.reap(got, std::chrono::seconds(1));
        if (count < 0)
            return diskFailure({DiskOp::Read, "bench", "the scratch file", 0, 0, nullptr}, count);
        for (int i = 0; i < count; ++i) {
            const DiskCompletion& completion = got[static_cast<std::size_t>(i)];
            --inFlight;
            ++done;
            if (completion.result != spec.requestBytes)
                failed = completion.result;
            const std::uint64_t tag = completion.tag;
            if (failed == 0 && nowNs() < until &&
                send(io, spec, lanes[tag / depth], tag, static_cast<int>(tag % depth)))
                ++inFlight;
        }
    }
    if (failed != 0)
        return diskFailure(
            {lanes[0].op, "bench", "the scratch file", spec.offset, spec.requestBytes, spec.memory},
            failed);
    const double seconds = 1e-9 * static_cast<double>(nowNs() - begin);
    return DiskSample{static_cast<double>(done * spec.requestBytes) / seconds,
        (processorSeconds() - processorBegin) / seconds};
}

} // namespace mr
