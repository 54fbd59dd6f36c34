#include "core/save/checkpoint_text.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace mr::fuzz {

// An accepted state has its values in range: its readers need no further check.
void checkpoint(std::string_view bytes)
{
    auto state = parseStateText(bytes, "state.json");
    if (!check(state))
        return;
    const nlohmann::json& json = state.value();
    require(json["step"].get<std::int64_t>() >= 0, "a step below zero");
    const auto position = json["sampler"][2].get<std::uint64_t>();
    require(position <= json["sampler"][3].get<std::uint64_t>(), "a place outside");
    if (!json.contains("window") || json["window"].is_null())
        return;
    for (const nlohmann::json& bank : {json["window"]["banks"][0], json["window"]["banks"][1]})
        require(bank[0].get<std::int64_t>() >= 0 && bank[2].is_number(), "a bank that is none");
    if (json["window"].contains("job") && !json["window"]["job"].is_null())
        require(json["window"]["job"][3].get<std::int64_t>() >= 0, "tiles below zero");
}

void manifest(std::string_view bytes)
{
    auto manifest = parseManifestText(bytes, "manifest.json");
    if (!check(manifest))
        return;
    for (const auto& [name, entry] : manifest.value()["files"].items()) {
        const std::filesystem::path path(name);
        require(path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end(),
            "a way out of the folder");
        require(entry["xxh3"].is_string(), "a file without a hash");
    }
}

} // namespace mr::fuzz
