#include "core/found/licence.h"

#include "core/found/small_reads.h"

#include <array>
#include <cstdint>
#include <variant>

namespace mr {

namespace {

constexpr std::uint64_t kMostHeadBytes = 64U << 10;

// "[a, b]", "- a" and quotes around a word of YAML.
std::string plainValue(std::string_view text)
{
    std::string value = firstLine(text);
    if (value.starts_with("- "))
        value = firstLine(std::string_view(value).substr(2));
    if (value.size() >= 2 && value.front() == '[' && value.back() == ']')
        value = value.substr(1, value.size() - 2);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front())
        value = value.substr(1, value.size() - 2);
    return value;
}

// The value of a key at the begin of a line, or of the line below it.
std::string valueOfKey(std::string_view matter, std::string_view key)
{
    const std::string wanted = "\n" + std::string(key) + ":";
    const std::size_t found = matter.find(wanted);
    if (found == std::string_view::npos)
        return {};
    const std::string_view rest = matter.substr(found + wanted.size());
    const std::size_t end = rest.find('\n');
    const std::string own = plainValue(rest.substr(0, end));
    if (!own.empty() || end == std::string_view::npos)
        return own;
    const std::string below = firstLine(rest.substr(end));
    return below.starts_with("- ") ? plainValue(below) : std::string();
}

// "other" says that the name stands elsewhere.
std::string chosen(const std::string& licence, const std::string& name)
{
    return licence.empty() || (licence == "other" && !name.empty()) ? name : licence;
}

std::string valueText(const GgufFile& file, std::string_view key)
{
    const GgufValue* value = file.find(key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->data);
    return text == nullptr ? std::string() : firstLine(*text);
}

} // namespace

std::string licenceOfReadme(std::string_view text)
{
    constexpr std::string_view kFence = "---";
    if (!text.starts_with(kFence))
        return {};
    const std::size_t end = text.find("\n---", kFence.size());
    if (end == std::string_view::npos)
        return {};
    const std::string_view matter = text.substr(kFence.size(), end - kFence.size());
    return chosen(valueOfKey(matter, "license"), valueOfKey(matter, "license_name"));
}

std::string licenceOfFolder(const std::filesystem::path& folder)
{
    std::string licence = licenceOfReadme(headOf(folder / "README.md", kMostHeadBytes));
    constexpr std::array<const char*, 5> kFiles = {
        "LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt"};
    for (const char* name : kFiles)
        if (licence.empty())
            licence = firstLine(headOf(folder / name, kMostHeadBytes));
    return licence;
}

std::string licenceOf(const GgufFile& file)
{
    return chosen(valueText(file, "general.license"), valueText(file, "general.license.name"));
}

} // namespace mr
