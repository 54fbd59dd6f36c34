// Corrects the rates in the user's cache after a run: where its steps took another time than the
// forecast, the rates that they measured replace those in the cache.
//
// The first measurement takes seconds, and the machine may have been busy then. A run lasts longer
// and is the very thing that a forecast is about. But a run that shared the machine with other
// programs measured those, too, so it corrects nothing.
//
// Threads  Any; reads and writes the cache.
// Errors   A cache that cannot be written stays as it was: the next run tries again.

#pragma once

#include "core/choose/rate_cache.h"
#include "core/choose/run_setup.h"

#include <filesystem>
#include <string>

namespace mr {

struct RunTruth {
    double stepSeconds = 0.0;     // mean of the steps that were measured
    int steps = 0;                // that many
    double othersPercent = 100.0; // share of all processors' time that other programs took
};

inline constexpr int kLeastTruthSteps = 16;
inline constexpr double kForecastTolerance = 0.25; // share of the steps' time

// Does the forecast of `setup` miss the truth by more than kForecastTolerance, and are the rates
// the cause? False where either is not known.
bool isForecastWrong(const RunSetup& setup, const RunTruth& truth);

// Puts `measured` into the cache at `path` if the cache has rates for this machine and the model
// and settings of `setup`. For a model that was too large to be tried, seconds of layers stay
// unknown. True: it did.
bool correctRates(const RunSetup& setup, const Feedback& measured, double othersPercent,
    const std::filesystem::path& path);

// "The forecast was 555 ms a step and the steps took 238 ms: ..."
std::string correctionWords(const RunSetup& setup, const RunTruth& truth);

} // namespace mr
