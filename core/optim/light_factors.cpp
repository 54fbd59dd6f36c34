#include "core/optim/light_factors.h"

#include "core/device/adamw.h"

#include <cmath>

namespace mr {

LightFactors lightFactors(double learningRate, double weightDecay, std::int64_t update) noexcept
{
    constexpr double kFading = -0.8;
    constexpr double kBeta1 = 0.9; // those of projectedStep
    constexpr double kBeta2 = 0.999;
    const double present = std::pow(static_cast<double>(update), kFading);
    LightFactors factors;
    factors.rate = static_cast<float>(learningRate);
    factors.decay = static_cast<float>(1.0 - learningRate * weightDecay);
    factors.past = static_cast<float>(1.0 - present);
    factors.present = static_cast<float>(present);
    factors.update = static_cast<std::uint64_t>(update);
    const auto count = static_cast<double>(update);
    factors.momentRate =
        learningRate * std::sqrt(1.0 - std::pow(kBeta2, count)) / (1.0 - std::pow(kBeta1, count));
    AdamwSettings settings;
    settings.weightDecay = weightDecay;
    const std::int64_t sinceChoice = (update - 1) % kRowRefresh + 1;
    factors.ofRows = adamwFactors(settings, learningRate, sinceChoice);
    factors.choosesRows = sinceChoice == 1;
    return factors;
}

} // namespace mr
