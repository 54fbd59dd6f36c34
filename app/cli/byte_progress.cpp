#include "app/cli/byte_progress.h"

#include "core/base/bytes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr::app {
namespace {

constexpr std::int64_t kShownEachNs = 1'000'000'000;
constexpr std::int64_t kRateOverNs = 10'000'000'000;

std::string timeText(double seconds)
{
    const auto whole = static_cast<std::int64_t>(seconds + 0.5);
    if (whole >= 3600)
        return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
    return whole >= 60 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                       : fmt::format("{} s", whole);
}

double secondsLeft(const HubProgress& progress, double rate)
{
    const std::uint64_t done = std::min(progress.doneBytes, progress.allBytes);
    return static_cast<double>(progress.allBytes - done) / rate;
}

} // namespace

ByteProgress::ByteProgress(ByteProgressKind kind, Write write)
    : m_kind(kind)
    , m_write(std::move(write))
{
}

void ByteProgress::show(std::int64_t nowNs, const HubProgress& progress)
{
    const bool isLast =
        progress.doneFiles == progress.allFiles && progress.doneBytes == progress.allBytes;
    if (m_kind == ByteProgressKind::Silent ||
        (!m_points.empty() && nowNs - m_points.back().ns < kShownEachNs && !isLast))
        return;
    if (!m_points.empty() && progress.doneBytes < m_points.back().bytes) // a file began anew
        m_points.clear();
    m_points.push_back({nowNs, progress.doneBytes});
    while (nowNs - m_points.front().ns > kRateOverNs)
        m_points.pop_front();
    if (m_kind == ByteProgressKind::Json) {
        m_write(json(progress));
        return;
    }
    m_write("\r" + text(progress) + "\x1b[K"); // erases the rest of a longer line before
    m_isOpen = true;
}

void ByteProgress::end()
{
    if (std::exchange(m_isOpen, false))
        m_write("\n");
}

double ByteProgress::rate() const
{
    if (m_points.size() < 2 || m_points.back().ns <= m_points.front().ns)
        return 0.0;
    return static_cast<double>(m_points.back().bytes - m_points.front().bytes) * 1e9 /
           static_cast<double>(m_points.back().ns - m_points.front().ns);
}

std::string ByteProgress::text(const HubProgress& progress) const
{
    std::string line =
        fmt::format("{} of {}", formatBytes(progress.doneBytes), formatBytes(progress.allBytes));
    if (progress.allFiles > 0)
        line += fmt::format(", {} of {} files", progress.doneFiles, progress.allFiles);
    const double perSecond = rate();
    if (perSecond < 1.0)
        return line;
    return line + fmt::format(", {}/s, {} left", formatBytes(static_cast<std::uint64_t>(perSecond)),
                      timeText(secondsLeft(progress, perSecond)));
}

std::string ByteProgress::json(const HubProgress& progress) const
{
    nlohmann::json event{{"event", "progress"}, {"done_bytes", progress.doneBytes},
        {"total_bytes", progress.allBytes}, {"done_files", progress.doneFiles},
        {"files", progress.allFiles}};
    if (const double perSecond = rate(); perSecond >= 1.0) {
        event["bytes_per_second"] = static_cast<std::uint64_t>(perSecond);
        event["seconds_left"] = static_cast<std::uint64_t>(secondsLeft(progress, perSecond));
    }
    return event.dump();
}

ByteProgress progressOnStderr()
{
    const bool isTerminal = ::isatty(STDERR_FILENO) == 1;
    return {isTerminal ? ByteProgressKind::Terminal : ByteProgressKind::Silent,
        [](std::string_view text) {
            (void)std::fwrite(text.data(), 1, text.size(), stderr);
            (void)std::fflush(stderr);
        }};
}

} // namespace mr::app
