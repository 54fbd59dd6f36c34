// DiskTasks: carries out a plan's tasks on the disk lanes, and moves state on disk between steps.
//
// A part of StepExecutor. In a step, tiles come to places of host memory and go back; between steps
// the first slot holds one tile at a time, for readers and writers of state. A task moves the
// regions of its tile that it is about, each as a job of the store.
//
// Threads    Engine thread.
// Ownership  Borrows memory and store, which outlive it, as do the events of submitted tasks.
// Errors     Those of the store; Internal for a range that is not a tile.
// Order      flush() before the next step: it brings home the tile changed between steps. Nothing
//            is allocated in submit(). Jobs of a lane overlap, except a read with an earlier write,
//            because it may read the bytes written, from the same place.

#pragma once

#include "core/device/device.h"
#include "core/plan/plan.h"
#include "core/step/disk_lanes.h"
#include "core/step/run_memory.h"
#include "core/tier/disk_store.h"

#include <millrace/status.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mr {

class DiskTasks final : public DiskLanes
{
public:
    static Result<std::unique_ptr<DiskTasks>> create(
        Device& device, const RunMemory& memory, DiskStore& store);

    Result<std::uint64_t> submit(
        const Task& task, const DiskAfter& after, DiskTimes* times) override;
    Gate& gate(Lane lane) noexcept override { return *m_gates[indexOf(lane)]; }
    Status waitFor(Lane lane, std::uint64_t generation) override;
    void drain() noexcept override;

    // Values of a state part from `first` on, all on disk. Block. Not during a step.
    Status read(GroupId group, StatePart part, std::int64_t first, std::span<std::byte> out);
    Status write(GroupId group, StatePart part, std::int64_t first, std::span<const std::byte> in);
    // Brings the tile that has the element to the first slot, where the caller reads and changes
    // the host's state of it until it asks for another tile. Blocks. Not during a step.
    Status openForChange(GroupId group, std::int64_t element);
    // Afterwards all tiles are on disk; those that nobody wrote are zero.
    Status flush();

    // Moved since the last call.
    struct Moved {
        std::int64_t readBytes = 0;
        std::int64_t writtenBytes = 0;
    };
    Moved takeMoved() noexcept;
    // Moved since create().
    const Moved& allMoved() const noexcept { return m_allMoved; }

private:
    DiskTasks(const RunMemory& memory, DiskStore& store);
    static constexpr std::size_t kDiskLanes = kLanes - static_cast<std::size_t>(Lane::DiskIn);
    static std::size_t indexOf(Lane lane) noexcept
    {
        return static_cast<std::size_t>(lane) - static_cast<std::size_t>(Lane::DiskIn);
    }

    struct Move {
        Lane lane{};
        int stage = 0;
        std::int32_t tile = 0;
        DiskRegion region{};
    };
    // One stored tile, from or to its place.
    struct Transfer {
        Lane lane{};
        bool isOut = false;
        std::int32_t stored = 0;
        std::span<std::byte> memory;
        std::size_t counted = 0; // bytes that the step is said to move
    };
    std::uint64_t submitMove(const Move& move, const DiskAfter& after, DiskTimes* times);
    Result<std::uint64_t> submitBoundary(
        const Task& task, const DiskAfter& after, DiskTimes* times);
    Result<std::uint64_t> submitFrozen(const Task& task, const DiskAfter& after, DiskTimes* times);
    std::uint64_t submitTransfer(
        const Transfer& transfer, const DiskAfter& after, DiskTimes* times);
    Status moveNow(Lane lane, std::int32_t tile);
    Status openTile(std::int32_t tile);
    Status closeTile();
    template <typename F>
    Status forTiles(GroupId group, StatePart part, std::int64_t first, std::size_t bytes, F&& fn);

    const RunMemory& m_memory;
    DiskStore& m_store;
    std::array<std::unique_ptr<Gate>, kDiskLanes> m_gates; // by lane
    std::array<std::uint64_t, kDiskLanes> m_generations{};
    bool m_boundariesGoOut = false; // the last did
    Moved m_moved;
    Moved m_allMoved;
    std::vector<bool> m_written; // by tile
    std::int32_t m_open = -1;    // the tile in the first slot, between steps
    bool m_changed = false;      // it is not as on disk
};

} // namespace mr
