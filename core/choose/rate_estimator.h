// RateEstimator: the rates a forecast needs, read off the tasks of steps that were made.
//
// So the rates hold for lanes at work together, as in a run, and not for each alone. A rate is the
// median over the newest tasks of its kind: a step that something else disturbed does not count.
//
// Threads    One owner.
// Ownership  Its samples; all memory is taken by the constructor, read() allocates nothing.
// Errors     None: a rate that was not measured stays as it was known.
// Units      Seconds; elements, bytes and flops per second.

#pragma once

#include "core/plan/plan.h"
#include "core/plan/policy.h"
#include "core/telemetry/stall_ledger.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace mr {

// The tasks of one kind (and place) of a run: their seconds per unit of work.
class RateSamples
{
public:
    RateSamples() { m_each.reserve(kMost); }

    void add(double seconds, double work) noexcept;
    void clear() noexcept;
    double median() const; // 0: none
    double rate() const;   // units of work per second; 0: not known

private:
    static constexpr std::size_t kMost = 4096;

    std::vector<double> m_each;
    std::size_t m_oldest = 0; // once there are kMost
};

// Model and settings that the tasks of a plan were made with.
struct RateReading {
    const ModelShape& shape;
    Precision precision = Precision::BF16;
    Recompute recompute = Recompute::None;
};

// The seconds that recompute=cheap adds to the backward of a block, where they were not measured:
// its ops and AdamW on the device read and write memory at one speed. 0: AdamW's is not known.
double estimatedCheapSeconds(const ModelShape& shape, const Feedback& rates) noexcept;

class RateEstimator
{
public:
    // `tasks` are the times of the plan's tasks, by index. All steps since clear() must be of one
    // `how`.
    void read(const StepPlan& plan, std::span<const Interval> tasks, const RateReading& how);
    void clear() noexcept;
    int steps() const noexcept { return m_steps; } // since clear()

    // `known`, with measured rates in its place.
    Feedback rates(const Feedback& known) const;

private:
    struct Layer {
        RateSamples forward;
        RateSamples backward;
        RateSamples keptBackward; // for a block with activations that the host kept

        bool isMeasured() const { return forward.median() > 0.0 || backward.median() > 0.0; }
    };
    // Small copies are latency, not rate; a tiny model has no others.
    struct Copies {
        RateSamples small;
        RateSamples large;
    };

    void readTask(const StepPlan& plan, const Task& task, double seconds, const RateReading& how);
    void readWork(const StepPlan& plan, const Task& task, double seconds, const RateReading& how);
    LayerSeconds secondsOf(const Layer& layer, const LayerSeconds& known) const;

    Layer m_embedding;
    std::array<Layer, kMostBlockKinds> m_blocks; // by GroupShape::kind
    Layer m_head;
    RateSamples m_blockFlops; // seconds per flop, of forward and backward together
    RateSamples m_gradient;
    RateSamples m_packed; // frozen weights of 4 bits, into a slot
    RateSamples m_deviceUpdate;
    RateSamples m_hostUpdate;
    Copies m_copyIn;
    Copies m_copyOut;
    int m_steps = 0;
    Recompute m_recompute = Recompute::None;
};

} // namespace mr
