// Metrics of the machine while a run went on, as the charts take them.
//
// Threads  Made by the feed's worker, immutable afterwards, shared by pointer.

#pragma once

#include <millrace/machine_metrics.h>
#include <millrace/run_reader.h>

#include <array>
#include <cstdint>
#include <memory>

namespace mr::ui {

struct MachineHistory {
    // Each without entries if it was never measured. All have the same period.
    std::array<CounterSeries, kMachineMetrics> series;
    std::int64_t endMs = 0; // after the last sample, since the run began

    const CounterSeries& operator[](MachineMetric metric) const
    {
        return series[static_cast<std::size_t>(metric)];
    }
};

using MachineHistoryPtr = std::shared_ptr<const MachineHistory>;

} // namespace mr::ui
