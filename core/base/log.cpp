#include "core/base/log.h"

#include "core/base/shown_text.h"

#include <sys/uio.h>

#include <array>
#include <new>
#include <string>

namespace mr {

void log(LogLevel level, std::string_view message) noexcept
{
    std::string_view prefix = "millrace: ";
    if (level == LogLevel::Warning)
        prefix = "millrace: warning: ";
    else if (level == LogLevel::Error)
        prefix = "millrace: error: ";
    std::string_view end = "\n";
    std::array<iovec, 3> parts{};
    std::string safe;
    try {
        safe = terminalText(message); // it may hold a stranger's name
        message = safe;
    } catch (const std::bad_alloc&) {
        message = "out of memory";
    }
    const std::array<std::string_view, 3> texts{prefix, message, end};
    for (std::size_t i = 0; i < parts.size(); ++i)
        parts.at(i) = {const_cast<char*>(texts.at(i).data()), texts.at(i).size()};
    // Nothing can be done where even stderr is gone.
    [[maybe_unused]] const auto written = writev(2, parts.data(), static_cast<int>(parts.size()));
}

} // namespace mr
