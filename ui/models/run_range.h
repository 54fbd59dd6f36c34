// RunRange: the stretch of a run that all its charts show, in steps and in time.
//
// Charts over steps and charts over time are zoomed together, so a range picked on one has to be
// found on the other.
//
// Threads  A value.
// Units    Steps at half steps, so that a step lies inside whole; seconds of active time since the
//          run began.

#pragma once

#include "math/step_series.h"

#include <cstdint>
#include <vector>

namespace mr::ui {

class RunRange
{
public:
    struct Ends {
        double lower = 0.0;
        double upper = 0.0;
    };

    bool isAll() const { return m_all; } // and follows the end
    Ends steps() const { return m_steps; }
    // Seconds of the shown steps; if all are shown, also before the first and after the last, up to
    // `measuredMs`.
    Ends seconds(const StepSeries& steps, std::int64_t measuredMs) const;

    void showAll() { m_all = true; }
    // After rows were added: all of them stay all of them.
    void follow(const StepSeries& steps, const std::vector<ScalarRow>& evaluations);
    // A range that lies outside of the steps is no range: all are shown.
    void pickSteps(const StepSeries& steps, Ends picked);
    // The steps that lie in this time, whole.
    void pickSeconds(const StepSeries& steps, Ends picked);

    // When a step had ended, and which was going on at a time (the last one, afterwards); NaN where
    // there is none.
    static double secondsOfStep(const StepSeries& steps, double step);
    static double stepAtSeconds(const StepSeries& steps, double seconds);

private:
    Ends m_steps{0.5, 10.5};
    bool m_all = true;
};

} // namespace mr::ui
