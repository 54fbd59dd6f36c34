// TaskTraits: the properties of each kind of task, as one table.
//
// A new TaskKind needs its value, a row of this table, an emitter, a case in the executor and a
// cost. All else that depends on the kind alone is asked for here.
//
// Threads  Pure.

#pragma once

#include "core/plan/disk_cuts.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <string_view>

namespace mr {

// Bytes that tasks read and write, by where they are. Which of them (a slot, a range, a
// micro-batch) the task says.
enum class Place : std::uint32_t {
    Batch = 1U << 0, // on the device, like all before HostScalars
    Weights = 1U << 1,
    State = 1U << 2,
    Boundary = 1U << 3,
    Activations = 1U << 4,
    GradientSum = 1U << 5,
    FinishedGradient = 1U << 6,
    PackedGradient = 1U << 7, // the complement's columns
    WindowSum = 1U << 8,
    UploadStaging = 1U << 9,
    Energies = 1U << 10, // by which columns are chosen
    Norms = 1U << 11,
    Scalars = 1U << 12,
    HostScalars = 1U << 13, // on the host, like all before Stage
    HostWeights = 1U << 14,
    HostState = 1U << 15,
    HostGradient = 1U << 16,
    HostWindowSum = 1U << 17,
    BoundaryHome = 1U << 18, // there or on disk
    HostActivations = 1U << 19,
    Stage = 1U << 20, // host memory, on the way from or to the disk
    Disk = 1U << 21,
};

// Several values of an enum, as bits.
struct Places {
    std::uint32_t bits = 0;

    constexpr Places() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): one place is a set of one
    constexpr Places(Place place)
        : bits(static_cast<std::uint32_t>(place))
    {
    }
    constexpr bool has(Place place) const noexcept { return hasAny(place); }
    constexpr bool hasAny(Places places) const noexcept { return (bits & places.bits) != 0; }
};

constexpr Places operator|(Places a, Places b) noexcept
{
    a.bits |= b.bits;
    return a;
}

constexpr Places operator|(Place a, Place b) noexcept
{
    return Places(a) | Places(b);
}

// Is the task about elements of one group?
enum class TaskRange : std::uint8_t { None, Part, WholeGroup };

// May it change data that a run must not lose? With windows, sums and norms last longer than a
// step.
enum class TaskChanges : std::uint8_t { Nothing, WithWindows, Always };

struct TaskTraits {
    TaskKind kind{};
    std::string_view name;  // as in plan texts and traces
    std::uint8_t lanes = 0; // bits by Lane
    TaskRange range{};
    bool hasMicroBatch = false;
    TaskChanges changes{};
    Places reads;             // with any home and any part
    Places writes;            // with any home and any part
    std::uint8_t regions = 0; // bits by DiskRegion: the parts of a tile it moves

    constexpr bool runsOn(Lane lane) const noexcept
    {
        return (lanes >> static_cast<unsigned>(lane) & 1U) != 0;
    }
    constexpr bool moves(DiskRegion region) const noexcept
    {
        return (regions >> static_cast<unsigned>(region) & 1U) != 0;
    }
    constexpr bool mayChange(bool hasWindows) const noexcept
    {
        return changes == TaskChanges::Always ||
               (changes == TaskChanges::WithWindows && hasWindows);
    }
};

const TaskTraits& traitsOf(TaskKind kind) noexcept;

// Does this kind of task write to disk?
inline bool isDiskWrite(TaskKind kind) noexcept
{
    return traitsOf(kind).writes.has(Place::Disk);
}

} // namespace mr
