// The constants of a light update (core/device/light_update.h), computed in double once a step and
// rounded.
//
// Source   Shazeer and Stern, "Adafactor" (arXiv 1804.04235), section 7.2: the weight of the past
// is
//          1 - t^-0.8.
// Threads  Pure.
// Units    `update` counts updates from 1.

#pragma once

#include "core/device/adamw_factors.h"

#include <cstdint>

namespace mr {

// AdamW's rows of a matrix are chosen anew after so many updates.
inline constexpr std::int64_t kRowRefresh = 200;

struct LightFactors {
    float rate = 0.0F;
    float decay = 1.0F;   // 1 - rate * weight decay
    float past = 0.0F;    // of averages of squares; 0 in the first update
    float present = 1.0F; // 1 - past
    std::uint64_t update = 0;
    double momentRate = 0.0;  // rate sqrt(1 - .999^t) / (1 - .9^t), of moments that begin at 0
    AdamwFactors ofRows;      // of an update of chosen rows, counted from their choice
    bool choosesRows = false; // this update does
    float clipFactor = 1.0F;  // of every gradient, given beforehand (ClipMode::PreviousNorm)
};

LightFactors lightFactors(double learningRate, double weightDecay, std::int64_t update) noexcept;

} // namespace mr
