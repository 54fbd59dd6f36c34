#include "core/choose/rate_correction.h"

#include "core/choose/measure_rates.h"

#include <millrace/library.h>

#include <array>
#include <cmath>
#include <cstdio>

namespace mr {

bool isForecastWrong(const RunSetup& setup, const RunTruth& truth)
{
    if (!setup.forecast.known || truth.steps < kLeastTruthSteps || truth.stepSeconds <= 0.0)
        return false;
    if (truth.othersPercent > kMostOthersPercent)
        return false;
    const double off = std::abs(setup.forecast.stepSeconds - truth.stepSeconds);
    return off > kForecastTolerance * truth.stepSeconds;
}

bool correctRates(const RunSetup& setup, const Feedback& measured, double othersPercent,
    const std::filesystem::path& path)
{
    auto subject = rateSubject(setup.spec, setup.config, inspectMachine());
    if (!subject.ok())
        return false;
    RateCache cache = RateCache::load(path);
    const RateSubject& known = subject.value();
    if (!cache.find(known.runKey) && !cache.find(known.key))
        return false;
    Feedback rates = measured;
    if (known.standIn)
        rates.forgetLayers();
    cache.putMeasured(known.runKey, rates, {unixSecondsNow(), othersPercent});
    return cache.save(path).ok();
}

std::string correctionWords(const RunSetup& setup, const RunTruth& truth)
{
    constexpr double kMs = 1e3;
    std::array<char, 200> text{};
    (void)std::snprintf(text.data(), text.size(),
        "The forecast was %.4g ms a step and the steps took %.4g ms; forecasts use the rates of "
        "this run from here on.",
        kMs * setup.forecast.stepSeconds, kMs * truth.stepSeconds);
    return text.data();
}

} // namespace mr
