// PlanKinds: which plans are among the first of their kind that a run carries out.
//
// Plans of one kind have the same kinds of tasks on the same lanes in the same order. The first run
// of a kind launches every kernel and every product that later runs of it launch.
//
// Threads  One owner.
// Errors   None.

#pragma once

#include "core/plan/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace mr {

class PlanKinds
{
public:
    // Whether `plan` is one of the first `runs` of its kind. Counts it. Allocates nothing.
    bool isEarly(const StepPlan& plan, int runs) noexcept
    {
        const std::uint64_t print = printOf(plan);
        for (Kind& kind : m_kinds)
            if (kind.runs > 0 && kind.print == print)
                return kind.runs < runs && ++kind.runs > 0;
        m_kinds[m_next] = {print, 1}; // a kind that was forgotten counts as new
        m_next = (m_next + 1) % m_kinds.size();
        return runs > 0;
    }

private:
    struct Kind {
        std::uint64_t print = 0;
        int runs = 0;
    };

    // FNV-1a.
    static std::uint64_t printOf(const StepPlan& plan) noexcept
    {
        std::uint64_t print = 0xcbf29ce484222325;
        for (const Task& task : plan.tasks) {
            const auto kind = static_cast<std::uint64_t>(task.kind);
            print = (print ^ (kind << 8 | static_cast<std::uint64_t>(task.lane))) * 0x100000001b3;
        }
        return print;
    }

    std::array<Kind, 64> m_kinds{};
    std::size_t m_next = 0;
};

} // namespace mr
