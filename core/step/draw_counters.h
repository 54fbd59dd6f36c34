// Counters of Philox for what a step draws, which the run's seed keys. No two draws share one.
//
// Threads  Pure.

#pragma once

#include <cstdint>

namespace mr {

// The bits by which a weight is rounded at random. `number`: of the weight, among all of the run.
constexpr std::uint64_t roundingCounter(std::uint64_t update, std::uint64_t number) noexcept
{
    constexpr unsigned kNumberBits = 24;
    return update << kNumberBits | number;
}

// Signs. `number`: of the weight, or of the chunk of one, among all of the run.
constexpr std::uint64_t signCounter(std::uint64_t update, std::uint64_t number) noexcept
{
    return std::uint64_t{1} << 63U | roundingCounter(update, number);
}

} // namespace mr
