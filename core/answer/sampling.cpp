#include "core/answer/sampling.h"

#include "core/base/philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace mr {

std::int32_t sampleToken(std::span<const float> logits, double temperature, double topP,
    std::uint64_t seed, std::int64_t position)
{
    const auto best = std::max_element(logits.begin(), logits.end());
    if (temperature <= 0.0 || topP <= 0.0)
        return static_cast<std::int32_t>(best - logits.begin());
    std::vector<std::int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    std::vector<double> weights;
    double total = 0.0;
    for (const std::int32_t token : order) {
        const double logit = logits[static_cast<std::size_t>(token)];
        weights.push_back(std::exp((logit - static_cast<double>(*best)) / temperature));
        total += weights.back();
    }
    // The smallest set of most likely tokens that holds topP of the mass.
    double kept = 0.0;
    std::size_t count = 0;
    while (count < weights.size() && kept < topP * total)
        kept += weights[count++];
    const auto random = philox(seed, static_cast<std::uint64_t>(position));
    const double uniform = (static_cast<double>(random[0]) + 0.5) / 4294967296.0;
    double rest = uniform * kept;
    for (std::size_t i = 0; i < count; ++i) {
        rest -= weights[i];
        if (rest < 0.0)
            return order[i];
    }
    return order[count - 1];
}

} // namespace mr
