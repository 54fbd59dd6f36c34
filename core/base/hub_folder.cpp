#include "core/base/hub_folder.h"

namespace mr {

namespace {

constexpr std::string_view kBetween = "--";

} // namespace

std::string hubFolderOf(std::string_view kind, std::string_view name)
{
    std::string folder = std::string(kind) + std::string(kBetween);
    for (const char c : name)
        folder += c == '/' ? std::string(kBetween) : std::string(1, c);
    return folder;
}

std::string hubNameOf(std::string_view kind, std::string_view folder)
{
    const std::string begin = std::string(kind) + std::string(kBetween);
    if (!folder.starts_with(begin))
        return {};
    std::string name(folder.substr(begin.size()));
    if (const std::size_t at = name.find(kBetween); at != std::string::npos)
        name.replace(at, kBetween.size(), "/");
    return name;
}

} // namespace mr
