#include "core/found/gguf_names.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace mr {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSuffix = ".gguf";
constexpr std::size_t kPartDigits = 5;

struct Part {
    std::string name;
    int number = 0;
    int parts = 0;
};

std::optional<int> fiveDigits(std::string_view text)
{
    int value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9')
            return std::nullopt;
        value = 10 * value + (c - '0');
    }
    return text.size() == kPartDigits ? std::optional(value) : std::nullopt;
}

// "NAME-00001-of-00003"
std::optional<Part> partOf(std::string_view stem)
{
    constexpr std::string_view kOf = "-of-";
    constexpr std::size_t kEnd = 1 + kPartDigits + kOf.size() + kPartDigits;
    if (stem.size() <= kEnd)
        return std::nullopt;
    const std::string_view end = stem.substr(stem.size() - kEnd);
    const auto number = fiveDigits(end.substr(1, kPartDigits));
    const auto parts = fiveDigits(end.substr(kEnd - kPartDigits));
    if (end.front() != '-' || end.substr(1 + kPartDigits, kOf.size()) != kOf || !number || !parts ||
        *number < 1 || *number > *parts)
        return std::nullopt;
    return Part{std::string(stem.substr(0, stem.size() - kEnd)), *number, *parts};
}

} // namespace

std::string GgufGroup::missing() const
{
    std::set<int> there;
    for (const fs::path& file : files)
        if (const auto part = partOf(file.stem().string()))
            there.insert(part->number);
    for (int number = 1; number <= parts && parts > 1; ++number)
        if (!there.contains(number))
            return "part " + std::to_string(number) + " of " + std::to_string(parts);
    return {};
}

std::vector<GgufGroup> ggufGroups(const std::vector<fs::path>& files)
{
    std::vector<GgufGroup> groups;
    std::map<std::pair<std::string, int>, std::size_t> places;
    for (const fs::path& file : files) {
        const std::string name = file.filename().string();
        if (!name.ends_with(kSuffix) || name.find("mmproj") != std::string::npos)
            continue;
        const auto part = partOf(file.stem().string());
        if (!part || part->parts == 1) {
            groups.push_back({name, {file}});
            continue;
        }
        const auto [at, isNew] = places.emplace(std::pair(part->name, part->parts), groups.size());
        if (isNew)
            groups.push_back({part->name + std::string(kSuffix), {}, part->parts});
        groups[at->second].files.push_back(file);
    }
    return groups;
}

} // namespace mr
