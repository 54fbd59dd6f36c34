// The lengths that elementwise ops are tried with, and their lines in the table.

#pragma once

#include "core/prove/conformance_case.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

namespace mr::conformance {

// Nothing, one, around a block of 1024, around an item of several.
inline constexpr std::int64_t kCounts[] = {0, 1, 17, 1023, 1024, 1025, 40000};

// Lengths of tensors that start one element late.
inline constexpr std::int64_t kLateCounts[] = {1, 17, 1025, 4099};

// Kinds of update that a case tries.
enum class Step { Decayed, Plain, NotFinite };

inline constexpr std::pair<Step, const char*> kSteps[] = {
    {Step::Decayed, " decayed"}, {Step::Plain, " not decayed"}, {Step::NotFinite, " not finite"}};

inline float asFloat(double x) noexcept
{
    return static_cast<float>(x);
}

inline Values bytesOf(const StepScalars& scalars)
{
    std::array<std::uint8_t, sizeof scalars> bytes;
    std::memcpy(bytes.data(), &scalars, sizeof scalars);
    return {bytes.begin(), bytes.end()};
}

template <typename F>
void push(Table& table, const char* op, const std::string& more, std::int64_t n, F run)
{
    table.push_back(
        {op, std::string(op) + " " + more + " (" + std::to_string(n) + ")", std::move(run)});
}

} // namespace mr::conformance
