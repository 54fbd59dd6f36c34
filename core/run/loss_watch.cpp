#include "core/run/loss_watch.h"

#include <algorithm>
#include <cmath>

namespace mr {
namespace {

constexpr double kSpike = 3.0; // times the median

} // namespace

bool LossWatch::add(double loss) noexcept
{
    if (std::isnan(m_base) && std::isfinite(loss))
        m_base = loss;
    const double usualLoss = usual();
    const bool high = std::isnan(loss) || (loss > kSpike * usualLoss && loss > m_base);
    if (!high)
        keep(loss);
    const bool begins = high && !m_isSpike;
    m_isSpike = high;
    return begins;
}

double LossWatch::usual() const noexcept
{
    if (m_count < kFewestLosses)
        return m_base;
    std::array<double, kMostLosses> sorted = m_losses;
    const auto middle = static_cast<std::ptrdiff_t>(std::min(m_count, kMostLosses) / 2);
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(m_count, kMostLosses));
    std::nth_element(sorted.begin(), sorted.begin() + middle, end);
    return sorted[static_cast<std::size_t>(middle)];
}

void LossWatch::keep(double loss) noexcept
{
    m_losses[m_count % kMostLosses] = loss;
    ++m_count;
}

} // namespace mr
