// usualModelPlaces(): where other programs keep models on this machine.
//
// Source   huggingface_hub, constants.py; Ollama's FAQ, "Where are models stored?".

#include "core/api/json_text.h"
#include "core/exchange/json_reads.h"
#include "core/found/small_reads.h"

#include <millrace/local_models.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace mr {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostPointerBytes = 4096;
constexpr std::uint64_t kMostSettingsBytes = 1U << 20;

// Empty: not set.
std::string environment(const char* name)
{
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

class PlaceList
{
public:
    // `path` as a program of the user would read it; empty: none. `below` follows it.
    void add(std::string path, const char* below = "")
    {
        if (path.empty())
            return;
        const std::string home = environment("HOME");
        if ((path == "~" || path.starts_with("~/")) && !home.empty())
            path = home + path.substr(1);
        std::error_code error;
        const fs::path whole = fs::absolute(fs::path(path) / below, error).lexically_normal();
        const std::string text = (whole.has_filename() ? whole : whole.parent_path()).string();
        if (!error && std::find(m_places.begin(), m_places.end(), text) == m_places.end())
            m_places.push_back(text);
    }

    std::vector<std::string> take() { return std::move(m_places); }

private:
    std::vector<std::string> m_places;
};

std::vector<std::string> huggingFacePlaces(const std::string& home)
{
    PlaceList places;
    places.add(environment("HF_HUB_CACHE"));
    places.add(environment("HUGGINGFACE_HUB_CACHE"));
    places.add(environment("HF_HOME"), "hub");
    places.add(environment("XDG_CACHE_HOME"), "huggingface/hub");
    places.add(home, ".cache/huggingface/hub");
    return places.take();
}

// The folder that the settings of LM Studio name; empty: they name none.
std::string downloadsFolder(const fs::path& home)
{
    Result<nlohmann::json> settings =
        parseJson(headOf(home / "settings.json", kMostSettingsBytes), "settings.json");
    return settings.ok() ? textOf(settings.value(), "downloadsFolder") : std::string();
}

std::vector<std::string> lmStudioPlaces(const std::string& home)
{
    PlaceList places;
    if (home.empty())
        return {};
    const std::string named =
        firstLine(headOf(fs::path(home) / ".lmstudio-home-pointer", kMostPointerBytes));
    if (!named.empty()) {
        places.add(downloadsFolder(named));
        places.add(named, "models");
    }
    places.add(downloadsFolder(fs::path(home) / ".lmstudio"));
    places.add(home, ".lmstudio/models");
    places.add(home, ".cache/lm-studio/models");
    return places.take();
}

std::vector<std::string> ollamaPlaces(const std::string& home)
{
    PlaceList places;
    places.add(environment("OLLAMA_MODELS"));
    places.add(home, ".ollama/models");
    places.add("/usr/share/ollama/.ollama/models");
    places.add("/var/lib/ollama/models");
    return places.take();
}

} // namespace

ModelPlaces usualModelPlaces(std::vector<std::string> folders)
{
    const std::string home = environment("HOME");
    return {huggingFacePlaces(home), lmStudioPlaces(home), ollamaPlaces(home), std::move(folders)};
}

} // namespace mr
