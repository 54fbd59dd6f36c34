#include "core/base/log.h"

#include <sys/uio.h>

#include <array>

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
    const std::array<std::string_view, 3> texts{prefix, message, end};
    for (std::size_t i = 0; i < parts.size(); ++i)
        parts.at(i) = {const_cast<char*>(texts.at(i).data()), texts.at(i).size()};
    // Nothing can be done where even stderr is gone.
    [[maybe_unused]] const auto written = writev(2, parts.data(), static_cast<int>(parts.size()));
}

} // namespace mr
