// CheckSchedule: which plans of a run are checked before they are carried out.
//
// Plans of one kind differ in versions only, so the first two of a kind that are right prove the
// rest, and checking every plan would cost more than building it.
//
// Threads  One owner.
// Errors   None.

#pragma once

#include "core/plan/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace mr {

class CheckSchedule
{
public:
    // Whether `plan`, built from `in`, is one of the first two of its kind. Counts it.
    bool wants(const StepPlan& plan, const Carry& in) noexcept
    {
        std::uint8_t& seen = m_seen[kindOf(plan, in)];
        return seen < kEnough && ++seen > 0;
    }

private:
    static constexpr std::uint8_t kEnough = 2;
    static constexpr std::size_t kFacts = 5;
    static constexpr int kPlaces = 64; // in a window; later ones count as the last

    static std::size_t kindOf(const StepPlan& plan, const Carry& in) noexcept
    {
        const GroupAnswers& answers = plan.answers.front();
        const bool closes = in.stepsIntoWindow + 1 >= answers.windowSteps;
        const bool selects =
            !plan.tasks.empty() && plan.tasks.back().kind == TaskKind::SelectColumns;
        const std::array<bool, kFacts> facts{
            in.landed, in.hostJob.has_value(), closes, answers.besideNext, selects};
        const int place = in.stepsIntoWindow < kPlaces ? in.stepsIntoWindow : kPlaces - 1;
        auto kind = static_cast<std::size_t>(place);
        for (const bool fact : facts)
            kind = 2 * kind + (fact ? 1 : 0);
        return kind;
    }

    std::array<std::uint8_t, (std::size_t{1} << kFacts) * kPlaces> m_seen{};
};

} // namespace mr
