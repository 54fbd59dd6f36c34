// ShareTuner: when a run looks at its device share again, the rates that its steps measured until
// then, and the cost of an exchange of plans.
//
// A run looks once after its first steps, and then whenever a checkpoint has just been written,
// because an exchange then costs no more than opening the run again.
//
// Threads    Engine thread.
// Ownership  Its samples. addStep() allocates nothing.
// Errors     None.
// Units      Seconds, bytes.

#pragma once

#include "core/choose/rate_estimator.h"

#include <cstdint>

namespace mr {

class ShareTuner
{
public:
    static constexpr int kFirstLook = 8;  // steps after the run was opened
    static constexpr int kLeastSteps = 4; // measured, that a look needs

    // A step of the run. The first after the run was opened is not measured: it is cold.
    void addStep(const StepPlan& plan, std::span<const Interval> tasks, const RateReading& how);
    // How long the step took that was added last. The first is not counted here either.
    void timed(double seconds) noexcept;
    int timedSteps() const noexcept { return m_timedSteps; } // since the run was opened
    double meanSeconds() const noexcept;                     // mean of those; 0: there were none
    // The rates since the last look, and their number of steps; `known` where nothing was measured.
    Feedback measured(const Feedback& known) const { return m_estimator.rates(known); }
    int measuredSteps() const noexcept { return m_estimator.steps(); }
    // Seconds the run has just spent on a checkpoint, and on opening again with another plan.
    void saved(double seconds) noexcept { m_saveSeconds = seconds; }
    void reopened(double seconds) noexcept;

    // `isSaved`: the newest checkpoint is of this step.
    bool isDue(bool isSaved) const noexcept;
    // The rates since the last look; `known` where nothing was seen. The next look starts afresh.
    Feedback look(const Feedback& known);

    // Seconds of a checkpoint, unless there is one, and of opening again. A part that was not
    // measured yet is assumed to take the time of the checkpoint's bytes at a rate that most disks
    // reach.
    double exchangeSeconds(bool isSaved, std::uint64_t checkpointBytes) const noexcept;

private:
    RateEstimator m_estimator;
    int m_steps = 0; // since the run was opened
    int m_timedSteps = 0;
    double m_timedSeconds = 0.0; // all of those together
    bool m_hasLooked = false;
    double m_saveSeconds = 0.0; // 0: not measured
    double m_reopenSeconds = 0.0;
};

} // namespace mr
