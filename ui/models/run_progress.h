// Progress of a run and the time it still needs, from the rows in the store.
//
// Units  Seconds; a negative number is "not known".

#pragma once

#include "models/run_snapshot.h"

namespace mr::ui {

struct RunProgress {
    std::int64_t step = 0;
    std::int64_t totalSteps = 0;  // 0: not known
    double elapsedSeconds = -1.0; // active time, without pauses
    double remainingSeconds = -1.0;
    double tokensPerSecond = -1.0; // over the last steps
    double lossNow;                // NaN: none yet
    double lossBefore;             // kRecentSteps earlier; NaN: the run is younger
};

// Steps of "now" for speed: enough to hold a checkpoint or two, few enough to follow.
inline constexpr std::size_t kRecentSteps = 50;

RunProgress progressOf(const RunSnapshot& snapshot);

bool isEnded(const RunRow& run);

} // namespace mr::ui
