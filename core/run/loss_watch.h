// LossWatch: whether the training loss of a step jumped.
//
// A loss is a spike when it is over three times the median of the steps before it and over the
// model's loss before training. A spike lasts until a loss is below that bound again, and is
// reported once; its losses do not move the median.
//
// Threads  Confined to its owner. Allocates nothing.
// Units    Nats per token.

#pragma once

#include <array>
#include <cstddef>
#include <limits>

namespace mr {

class LossWatch
{
public:
    // The evaluation of step 0. Without one the first loss stands for it.
    void setBase(double loss) noexcept { m_base = loss; }

    // Does a spike begin with this loss?
    bool add(double loss) noexcept;

    // Median of the last 64 losses that were no spike; the base while there are fewer than 8. NaN:
    // nothing is known.
    double usual() const noexcept;

private:
    static constexpr std::size_t kMostLosses = 64;
    static constexpr std::size_t kFewestLosses = 8;

    void keep(double loss) noexcept;

    std::array<double, kMostLosses> m_losses{}; // a ring
    std::size_t m_count = 0;                    // ever kept
    double m_base = std::numeric_limits<double>::quiet_NaN();
    bool m_isSpike = false;
};

} // namespace mr
