// RunStatus: the state of a run as the history keeps it.
//
// Threads  Pure.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mr {

enum class RunStatus : std::uint8_t {
    Draft,
    Queued,
    Starting,
    Running,
    Pausing,
    Paused, // waits for room to save
    Saving,
    Done,
    Stopped,
    Failed,
    Lost, // its process ended without a word
};

inline constexpr std::size_t kRunStatuses = 11;

// As the history, JSON and the command line write them.
inline constexpr std::array<std::string_view, kRunStatuses> kRunStatusNames{"draft", "queued",
    "starting", "running", "pausing", "paused", "saving", "done", "stopped", "failed", "lost"};

constexpr std::string_view name(RunStatus status) noexcept
{
    return kRunStatusNames[static_cast<std::size_t>(status)];
}

// Nothing where no status has that name.
constexpr std::optional<RunStatus> runStatusOf(std::string_view text) noexcept
{
    for (std::size_t i = 0; i < kRunStatuses; ++i)
        if (kRunStatusNames[i] == text)
            return static_cast<RunStatus>(i);
    return std::nullopt;
}

// Whether its process is at work, or was when it was lost.
constexpr bool isLive(RunStatus status) noexcept
{
    return status >= RunStatus::Starting && status <= RunStatus::Saving;
}

constexpr bool hasEnded(RunStatus status) noexcept
{
    return status >= RunStatus::Done;
}

constexpr bool endedEarly(RunStatus status) noexcept
{
    return status > RunStatus::Done;
}

} // namespace mr
