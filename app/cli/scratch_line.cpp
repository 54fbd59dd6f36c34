#include "app/cli/scratch_line.h"

#include "app/cli/commands.h"
#include "core/base/bytes.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr::app {
namespace {

constexpr std::int64_t kIntervalNs = 1'000'000'000;
constexpr const char* kToLineStart = "\r";
constexpr const char* kClearRest = "\x1b[K"; // erases the rest of a longer line before

} // namespace

ScratchLineKind scratchLineKind(bool json)
{
    if (json)
        return ScratchLineKind::Json;
    return ::isatty(STDERR_FILENO) == 1 ? ScratchLineKind::Terminal : ScratchLineKind::Silent;
}

ScratchLine::Write scratchLineWriter(ScratchLineKind kind)
{
    if (kind == ScratchLineKind::Json)
        return printLine;
    return [](std::string_view text) {
        (void)std::fwrite(text.data(), 1, text.size(), stderr);
        (void)std::fflush(stderr);
    };
}

ScratchLine::ScratchLine(ScratchLineKind kind, Write write)
    : m_kind(kind)
    , m_write(std::move(write))
{
}

void ScratchLine::show(std::int64_t nowNs, std::uint64_t doneBytes, std::uint64_t allBytes)
{
    if (!m_isFilling)
        m_lastNs = nowNs;
    m_isFilling = doneBytes < allBytes;
    // The last one belongs to those before it.
    const bool isDue = m_isFilling ? nowNs - m_lastNs >= kIntervalNs : m_isShown;
    if (m_kind == ScratchLineKind::Silent || !isDue)
        return;
    m_lastNs = nowNs;
    m_isShown = m_isFilling;
    if (m_kind == ScratchLineKind::Json) {
        m_write(nlohmann::json{
            {"event", "scratch"}, {"done_bytes", doneBytes}, {"total_bytes", allBytes}}
                    .dump()); // ASCII
        return;
    }
    m_write(kToLineStart + ("Preparing files on disk: " + formatBytes(doneBytes)) + " of " +
            formatBytes(allBytes) + kClearRest + (m_isFilling ? "" : "\n"));
}

void ScratchLine::end()
{
    if (std::exchange(m_isShown, false) && m_kind == ScratchLineKind::Terminal)
        m_write("\n");
    m_isFilling = false;
}

} // namespace mr::app
