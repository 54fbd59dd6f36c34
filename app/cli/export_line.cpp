#include "app/cli/export_line.h"

#include "core/base/bytes.h"

#include <unistd.h>

#include <cstdio>

namespace mr::app {

ExportLine::ExportLine()
    : m_isShown(isatty(STDERR_FILENO) == 1)
{
}

bool ExportLine::take(std::uint64_t done, std::uint64_t all)
{
    if (m_stop.isSeen())
        return false;
    constexpr std::chrono::milliseconds kApart{200};
    const Clock::time_point now = Clock::now();
    if (!m_isShown || (done < all && now - m_shown < kApart))
        return true;
    m_shown = now;
    const double seconds = std::chrono::duration<double>(now - m_begin).count();
    const double left =
        done == 0 ? 0.0 : seconds * static_cast<double>(all - done) / static_cast<double>(done);
    std::fprintf(stderr, "\r\033[K%s of %s written, %.0f s left", formatBytes(done).c_str(),
        formatBytes(all).c_str(), left);
    if (done == all)
        std::fprintf(stderr, "\r\033[K");
    return true;
}

} // namespace mr::app
