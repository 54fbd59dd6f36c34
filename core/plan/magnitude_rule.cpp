#include "core/plan/magnitude_rule.h"

#include <algorithm>

namespace mr {

ColumnMeans meansOf(std::span<const float> energies, std::span<const std::int32_t> urgent,
    std::int64_t rows) noexcept
{
    double all = 0.0;
    for (const float energy : energies)
        all += static_cast<double>(energy);
    double most = 0.0;
    for (const std::int32_t column : urgent)
        most += static_cast<double>(energies[static_cast<std::size_t>(column)]);
    const auto elements = [rows](std::size_t columns) {
        return static_cast<double>(rows) * static_cast<double>(columns);
    };
    // Where the urgent columns have it all, rounding may leave the difference below zero.
    return {most / elements(urgent.size()),
        std::max(0.0, all - most) / elements(energies.size() - urgent.size())};
}

IntervalChoice chooseInterval(std::span<const ColumnMeans> weights) noexcept
{
    IntervalChoice choice;
    choice.weights = static_cast<std::int64_t>(weights.size());
    for (const ColumnMeans& means : weights) {
        choice.means.urgent += means.urgent / static_cast<double>(weights.size());
        choice.means.complement += means.complement / static_cast<double>(weights.size());
    }
    for (int steps = 1; steps <= kLongestByMagnitude; ++steps) {
        choice.steps = steps;
        choice.votes = std::count_if(weights.begin(), weights.end(),
            [steps](const ColumnMeans& w) { return steps * w.complement >= w.urgent; });
        if (choice.isAgreed())
            break;
    }
    return choice;
}

} // namespace mr
