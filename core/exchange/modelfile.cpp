#include "core/exchange/modelfile.h"

#include "core/base/file.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

namespace mr {
namespace {

constexpr std::uint64_t kMostGenerationBytes = std::uint64_t{1} << 20;

bool isPlain(const std::string& stop)
{
    return !stop.empty() && stop.find_first_of("\"\\\r\n") == std::string::npos;
}

} // namespace

Result<std::string> Modelfile::text() const
{
    constexpr const char* kQuotes = "\"\"\"";
    if (chatTemplate.find(kQuotes) != std::string::npos || chatTemplate.ends_with('"'))
        return Status::error(ErrorKind::InvalidArgument,
            "the chat template has quotes that a Modelfile cannot hold; export --to gguf");
    std::string out = "# ollama create NAME -f Modelfile\nFROM " + weights + "\n";
    if (!chatTemplate.empty())
        out += std::string("TEMPLATE ") + kQuotes + chatTemplate + kQuotes + "\n";
    for (const std::string& stop : stops)
        if (isPlain(stop))
            out += "PARAMETER stop \"" + stop + "\"\n";
    for (const auto& [name, value] : parameters)
        out += "PARAMETER " + name + " " + value + "\n";
    return out;
}

Result<std::vector<std::pair<std::string, std::string>>> modelfileSampling(
    const std::filesystem::path& folder)
{
    constexpr std::array<std::pair<const char*, const char*>, 5> kNames = {
        {{"temperature", "temperature"}, {"top_p", "top_p"}, {"top_k", "top_k"}, {"min_p", "min_p"},
            {"repetition_penalty", "repeat_penalty"}}};
    std::vector<std::pair<std::string, std::string>> out;
    const std::filesystem::path file = folder / "generation_config.json";
    std::error_code error;
    if (!std::filesystem::exists(file, error))
        return out;
    MR_ASSIGN(const std::string text, readWholeFile(file, kMostGenerationBytes));
    const auto object = nlohmann::json::parse(text, nullptr, false);
    if (!object.is_object())
        return Status::error(
            ErrorKind::InvalidArgument, file.string() + ": is no JSON object; mend or remove it");
    for (const auto& [theirs, ours] : kNames)
        if (const auto at = object.find(theirs);
            at != object.end() && at->is_number() && std::isfinite(at->get<double>()))
            out.emplace_back(ours, fmt::format("{}", at->get<double>()));
    return out;
}

} // namespace mr
