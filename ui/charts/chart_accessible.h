// Screen readers meet LineChart, StallStrip and StepTimelineChart as charts whose description is
// their summary.

#pragma once

namespace mr::ui {

struct ChartAccessible {
    static void install(); // once for the program; further calls do nothing
};

} // namespace mr::ui
