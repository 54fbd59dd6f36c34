#include "core/optim/turn_schedule.h"

#include "core/base/philox.h"

#include <algorithm>
#include <utility>

namespace mr {

// Fisher and Yates' shuffle of the round.
GroupId TurnSchedule::groupOf(std::int64_t turn) const
{
    constexpr std::uint64_t kOrderKey = 0x7475726e73ULL; // "turns"
    const auto count = static_cast<std::int64_t>(groups.size());
    const auto round = static_cast<std::uint64_t>(turn / count);
    std::vector<GroupId> order = groups;
    for (std::size_t left = order.size(); left > 1; --left) {
        const std::uint64_t word = philox(seed ^ kOrderKey, left, round)[0];
        std::swap(order[left - 1], order[static_cast<std::size_t>((word * left) >> 32)]);
    }
    return order[static_cast<std::size_t>(turn % count)];
}

std::int64_t defaultTurnSteps(std::int64_t steps, std::int64_t groups) noexcept
{
    constexpr std::int64_t kLeast = 20;
    return std::max(kLeast, steps / (2 * groups));
}

} // namespace mr
