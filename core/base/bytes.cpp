#include "core/base/bytes.h"

#include <array>
#include <cstdio>

namespace mr {

std::string formatBytes(std::uint64_t bytes)
{
    constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    if (bytes < 1024)
        return std::to_string(bytes) + " B";
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    // 1023.95 would print as 1024.0 of the smaller unit.
    while (value >= 1023.95 && unit + 1 < kUnits.size()) {
        value /= 1024.0;
        ++unit;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits.at(unit));
    return text.data();
}

} // namespace mr
