// findLocalModels(): the stores one after the other.

#include "core/base/shown_text.h"
#include "core/found/folder_walk.h"
#include "core/found/found_models.h"
#include "core/found/hugging_face_cache.h"
#include "core/found/ollama_store.h"

#include <millrace/local_models.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace mr {

namespace {

using FindIn = void (*)(const std::filesystem::path& place, FoundModels& out);

void findInHub(const std::filesystem::path& place, FoundModels& out)
{
    findInHuggingFaceCache(listFolder(place), out);
}

void findIn(const std::vector<std::string>& places, ModelStore store, FindIn find, FoundModels& out)
{
    for (const std::string& place : places)
        if (out.beginPlace(store, place))
            find(place, out);
}

LocalModels find(const ModelPlaces& places, FoundModels found)
{
    findIn(places.huggingFace, ModelStore::HuggingFace, findInHub, found);
    findIn(places.lmStudio, ModelStore::LmStudio, findBelow, found);
    findIn(places.ollama, ModelStore::Ollama, findInOllamaStore, found);
    findIn(places.folders, ModelStore::Folder, findBelow, found);
    return found.take();
}

} // namespace

std::string_view name(ModelStore store) noexcept
{
    switch (store) {
    case ModelStore::HuggingFace:
        return "Hugging Face";
    case ModelStore::LmStudio:
        return "LM Studio";
    case ModelStore::Ollama:
        return "Ollama";
    case ModelStore::Folder:
        break;
    }
    return "folder";
}

std::string_view name(ModelUse use) noexcept
{
    switch (use) {
    case ModelUse::Train:
        return "train";
    case ModelUse::Adapter:
        return "adapter";
    case ModelUse::Nothing:
        break;
    }
    return "nothing";
}

LocalModels findLocalModels(const ModelPlaces& places)
{
    return find(places, FoundModels());
}

Result<std::string> localModelPath(const std::string& text, const ModelPlaces& places)
{
    std::error_code error;
    const bool isPath = text.empty() || text.front() == '/' || text.front() == '.' ||
                        text.front() == '~' || std::filesystem::exists(text, error);
    if (isPath)
        return text;
    const LocalModels found = find(places, FoundModels(text));
    if (found.models.empty())
        return text;
    const LocalModel& model = found.models.front();
    if (found.models.size() > 1) {
        std::string paths;
        for (const LocalModel& each : found.models)
            paths += "\n" + (each.path.empty() ? each.reason : each.path);
        return Status::error(ErrorKind::InvalidArgument,
            shownName(text) + " names several models; name one of their paths:" + paths);
    }
    if (model.use == ModelUse::Nothing)
        return Status::error(ErrorKind::InvalidArgument,
            shownName(text) + " is on this machine and cannot be used: " + model.reason);
    return model.path;
}

} // namespace mr
