// PlaceBook: the last writer of each place and its readers since, so the tasks to wait for.
//
// A task may read a place once its writer is over, and write it once its writer and all readers
// are. Which places a task uses follows from its traits and from the plan: a place is a slot, or
// the home of data that leaves its slot. Ranges of a group are not places.
//
// Threads  One owner.
// Order    begin, then for each task of a plan, in its order: waitsOf, note.

#pragma once

#include "core/plan/plan.h"
#include "core/plan/task_traits.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

struct PlaceUse {
    Place place{};
    std::int32_t index = 0; // number among the places of its kind
    bool writes = false;    // else it reads
};

// The places that a task uses, at most six.
class PlaceUses
{
public:
    // Reads only the answers and counts of the plan.
    PlaceUses(const StepPlan& plan, const Task& task);

    std::span<const PlaceUse> all() const noexcept { return std::span(m_uses).first(m_count); }

private:
    void add(Place place, std::int32_t index, bool writes);
    void addWork(const StepPlan& plan, const Task& task);
    void addVisit(const StepPlan& plan, const Task& task);

    std::array<PlaceUse, 6> m_uses{};
    std::size_t m_count = 0;
};

class PlaceBook
{
public:
    // Forgets all uses and keeps its memory.
    void begin();

    // Calls `visit` with every task that must be over before the use, except those on the same
    // lane, which are.
    template <typename Visit>
    void visitBefore(const PlaceUse& use, Lane lane, Visit visit) const
    {
        const std::vector<Entry>& entries = m_entries[kindOf(use.place)];
        if (static_cast<std::size_t>(use.index) >= entries.size())
            return;
        const Entry& entry = entries[static_cast<std::size_t>(use.index)];
        const std::size_t count = use.writes ? entry.count : entry.writers;
        for (std::size_t i = 0; i < count; ++i)
            if (entry.lanes[i] != lane)
                visit(entry.tasks[i]);
    }

    void note(const PlaceUse& use, Lane lane, TaskIndex task);

private:
    static constexpr std::size_t kKinds = 22;
    static constexpr std::size_t kMostTasks = 4;

    // Its writer, if there is one, then the last reader of each lane since.
    struct Entry {
        std::array<TaskIndex, kMostTasks> tasks{};
        std::array<Lane, kMostTasks> lanes{};
        std::uint8_t writers = 0;
        std::uint8_t count = 0;
    };

    static std::size_t kindOf(Place place) noexcept;

    std::array<std::vector<Entry>, kKinds> m_entries;
};

} // namespace mr
