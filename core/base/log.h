// Log lines on stderr, for messages with no better place: destructors that fail, a database that is
// gone. Messages of a run go to its recorder instead.
//
// Threads  Any; one line is one write, so lines do not mix. Never throws.

#pragma once

#include <cstdint>
#include <string_view>

namespace mr {

enum class LogLevel : std::uint8_t { Info, Warning, Error };

void log(LogLevel level, std::string_view message) noexcept;

} // namespace mr
