#include "core/base/kernel_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

namespace mr {

std::string readKernelFile(const std::filesystem::path& path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::uint64_t> takeNumber(std::string_view& text)
{
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    text.remove_prefix(begin);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc())
        return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

std::optional<std::uint64_t> readKernelNumber(const std::filesystem::path& path)
{
    const std::string text = readKernelFile(path);
    std::string_view view = text;
    return takeNumber(view);
}

std::optional<std::uint64_t> numberOfLine(std::string_view text, std::string_view name, char after)
{
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!line.starts_with(name) || !line.substr(name.size()).starts_with(after))
            continue;
        line.remove_prefix(name.size() + 1);
        return takeNumber(line);
    }
    return std::nullopt;
}

} // namespace mr
