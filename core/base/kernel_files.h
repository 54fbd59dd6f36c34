// Small files of /proc and /sys: whole as text, and the numbers in them.
//
// Threads  Any.
// Errors   None: a file that cannot be read is empty, and a number that is not there is absent.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace mr {

std::string readKernelFile(const std::filesystem::path& path);

// The number that `text` begins with, behind spaces; it is cut off. Nothing if something else comes
// first.
std::optional<std::uint64_t> takeNumber(std::string_view& text);

// The number that a file begins with.
std::optional<std::uint64_t> readKernelNumber(const std::filesystem::path& path);

// The number behind `name` and the character after it, on a line that begins so: "MemTotal" and ':'
// of /proc/meminfo.
std::optional<std::uint64_t> numberOfLine(std::string_view text, std::string_view name, char after);

} // namespace mr
