#include "core/save/model_folder.h"

#include "core/base/file.h"
#include "core/exchange/gguf_folder.h"
#include "core/model/peft_folder.h"
#include "core/save/checkpoint.h"
#include "core/telemetry/run_folder.h"

#include <millrace/session.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostTemplateBytes = std::uint64_t{4} << 20;

bool holds(const fs::path& folder, const char* file)
{
    std::error_code ignored;
    return fs::exists(folder / file, ignored);
}

bool isModel(const fs::path& folder)
{
    return holds(folder, "config.json");
}

bool isAdapterFolder(const fs::path& folder)
{
    return holds(folder, "adapter_config.json");
}

// The folder names its model; one that was trained elsewhere may name it as the Hub does.
Result<ModelPlace> placeOfAdapter(const fs::path& folder)
{
    MR_ASSIGN(const PeftConfig config, readPeftConfig(folder));
    if (isModel(config.base))
        return ModelPlace{config.base, folder.string()};
    return Status::error(ErrorKind::InvalidArgument,
        folder.string() + ": is an adapter of " +
            (config.base.empty() ? std::string("a model that it does not name") : config.base) +
            ", which is no model folder here; name both, with --model and --adapter");
}

// Nothing where the folder has neither.
Result<std::optional<ModelPlace>> placeIn(const fs::path& folder)
{
    if (isModel(folder / "model"))
        return std::optional(ModelPlace{(folder / "model").string()});
    if (!isAdapterFolder(folder / "adapter"))
        return std::optional<ModelPlace>();
    MR_ASSIGN(auto place, placeOfAdapter(folder / "adapter"));
    return std::optional(std::move(place));
}

Result<ModelPlace> ownPlaceOf(const std::string& path)
{
    const fs::path folder = path;
    std::error_code ignored;
    if (isGgufFile(folder)) {
        MR_ASSIGN(const fs::path made, ggufFolder(folder));
        return ModelPlace{made.string()};
    }
    if (isModel(folder))
        return ModelPlace{path};
    if (isAdapterFolder(folder))
        return placeOfAdapter(folder);
    const bool isRun = fs::exists(folder / "run.json", ignored);
    fs::path saved; // where the run saves to if that is another folder
    bool inTurns = false;
    if (isRun) {
        MR_ASSIGN(const RunSpec spec, readRunSpec(path));
        saved = spec.saveDir;
        inTurns = trainsInTurns(spec);
    }
    std::vector<fs::path> places = {saved, folder};
    const auto checkpoints = listCheckpoints(folder, saved);
    if (!checkpoints.empty())
        places.push_back(checkpoints.front());
    for (const fs::path& place : places) {
        if (place.empty())
            continue;
        MR_ASSIGN(auto found, placeIn(place));
        if (found)
            return std::move(*found);
    }
    if (isRun && inTurns)
        return Status::error(ErrorKind::InvalidArgument,
            path + ": this run trains one block after the other and writes its model at its end; "
                   "resume it, or ask it while it trains (Try it)");
    if (isRun)
        return Status::error(
            ErrorKind::InvalidArgument, path + ": this run has no model yet; it writes one with "
                                               "every checkpoint and at its end");
    return ModelPlace{path};
}

} // namespace

Result<std::string> ModelPlace::chatTemplate() const
{
    if (adapter.empty() || !holds(adapter, "chat_template.jinja"))
        return std::string();
    return readWholeFile(fs::path(adapter) / "chat_template.jinja", kMostTemplateBytes);
}

Result<ModelPlace> modelPlaceOf(const std::string& path, const std::string& adapter)
{
    MR_ASSIGN(ModelPlace place, ownPlaceOf(path));
    if (adapter.empty())
        return place;
    if (!place.adapter.empty())
        return Status::error(ErrorKind::InvalidArgument,
            path + ": is trained as an adapter already; name its model, " + place.model +
                ", to try another one");
    place.adapter = adapter;
    return place;
}

fs::path runFolderOf(const std::string& path)
{
    std::error_code failed;
    fs::path folder = fs::weakly_canonical(path, failed);
    constexpr int kLevels = 4;
    for (int level = 0; level < kLevels && !failed; ++level) {
        if (fs::is_regular_file(folder / "run.json", failed))
            return folder;
        failed.clear();
        folder = folder.parent_path();
    }
    return {};
}

bool isTrainedOnPrompts(const std::string& path)
{
    const fs::path folder = runFolderOf(path);
    if (folder.empty())
        return false;
    const auto run = readRunRecord(folder.string());
    return run.ok() && Result(run).value().prompts;
}

} // namespace mr
