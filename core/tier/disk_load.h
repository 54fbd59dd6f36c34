// The load of the disk benchmark: jobs through a DiskStore, as many as there are buffers, and a
// watch that tells how far it is and stops it.
//
// Threads  One.
// Errors   The store's; Cancelled, when nothing is in flight any more.
// Units    Bytes, seconds.

#pragma once

#include "core/device/device.h"
#include "core/tier/disk_bare.h"
#include "core/tier/disk_bench.h"
#include "core/tier/disk_store.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace mr {

inline constexpr std::size_t kDiskLoadBuffers = 6; // tiles under way each way
// No tile is under way twice, mixed either.
inline constexpr std::uint64_t kLeastDiskLoadTiles = 2 * kDiskLoadBuffers;

// Reports the progress of a benchmark, one stretch after the other, and tells when it is cancelled.
class DiskBenchWatch
{
public:
    // Borrows `spec`.
    explicit DiskBenchWatch(const DiskBenchSpec& spec)
        : m_spec(spec)
    {
    }

    void enter(double from, double to);
    void at(double share) const; // share of the stretch
    bool cancelled() const { return m_spec.cancelled && m_spec.cancelled(); }
    Status status() const;

private:
    const DiskBenchSpec& m_spec;
    double m_from = 0.0;
    double m_length = 0.0;
};

using DiskLoadGates = std::array<std::unique_ptr<Gate>, 2>; // by DiskOp; they outlive the store

class DiskLoad
{
public:
    // Borrows all; `memory` has 2 * kDiskLoadBuffers tiles.
    DiskLoad(DiskStore& store, const DiskLoadGates& gates, std::span<std::byte> memory);

    // Every tile, three times: the first two generations are always verified, and a rate shall be
    // that of later steps.
    Status warmUp(const DiskBenchWatch& watch);
    Result<DiskSample> sample(DiskMix mix, double seconds, const DiskBenchWatch& watch);

private:
    // The next of `count` tiles from `first`, once a buffer of its direction is free.
    Status submit(DiskOp op, int first, int count);
    Status drain();

    DiskStore& m_store;
    const DiskLoadGates& m_gates;
    std::span<std::byte> m_memory;
    int m_tiles;
    std::uint64_t m_tileBytes;
    std::array<std::uint64_t, 2> m_submitted{};
};

} // namespace mr
