// `millrace models`: models that are on this machine already, and what can be done with each.

#include "app/cli/commands.h"
#include "core/base/bytes.h"

#include <millrace/local_models.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mr::app {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kModelColumns = 6;
using ModelCells = std::array<std::string, kModelColumns>;

struct ModelsOptions {
    std::vector<std::string> folders;
    bool json = false;
};

Json describe(const LocalModel& model)
{
    return {{"event", "model"}, {"name", model.name}, {"source", name(model.store)},
        {"path", model.path}, {"revision", model.revision}, {"architecture", model.architecture},
        {"parameters", model.parameters}, {"bytes", model.bytes}, {"licence", model.licence},
        {"adapter", model.isAdapter}, {"use", name(model.use)}, {"reason", model.reason}};
}

Json describe(const LookedPlace& place)
{
    return {{"source", name(place.store)}, {"path", place.path}, {"exists", place.exists},
        {"fault", place.fault}};
}

void printObjects(const LocalModels& found)
{
    for (const LocalModel& model : found.models)
        printJson(describe(model));
    Json end{{"event", "end"}, {"models", found.models.size()}, {"bytes", found.bytes},
        {"places", Json::array()}};
    for (const LookedPlace& place : found.places)
        end["places"].push_back(describe(place));
    printJson(end);
}

std::string countText(std::int64_t parameters)
{
    constexpr double kMillion = 1e6;
    constexpr double kBillion = 1e9;
    const auto count = static_cast<double>(parameters);
    if (parameters == 0)
        return "-";
    if (count < kMillion)
        return std::to_string(parameters);
    return count < kBillion ? fmt::format("{:.0f}M", count / kMillion)
                            : fmt::format("{:.1f}B", count / kBillion);
}

ModelCells cellsOf(const LocalModel& model)
{
    const auto known = [](const std::string& text) { return text.empty() ? "-" : text; };
    return {model.name, formatBytes(model.bytes), countText(model.parameters),
        known(model.architecture), known(model.licence), std::string(name(model.use))};
}

void printTable(const LocalModels& found)
{
    const ModelCells head = {"name", "size", "parameters", "architecture", "licence", "can"};
    std::array<std::size_t, kModelColumns> widths{};
    std::vector<ModelCells> rows = {head};
    for (const LocalModel& model : found.models)
        rows.push_back(cellsOf(model));
    for (const ModelCells& row : rows)
        for (std::size_t c = 0; c < kModelColumns; ++c)
            widths[c] = std::max(widths[c], row[c].size());
    const auto print = [&widths](const ModelCells& row) {
        std::string line = " ";
        for (std::size_t c = 0; c < kModelColumns; ++c)
            line += fmt::format(" {:<{}} ", row[c], c + 1 < kModelColumns ? widths[c] : 0);
        printText("%s", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
    };
    print(head);
    for (std::size_t i = 0; i < found.models.size(); ++i) {
        const LocalModel& model = found.models[i];
        if (i == 0 || model.store != found.models[i - 1].store)
            printText("%s", std::string(name(model.store)).c_str());
        print(rows[i + 1]);
        if (!model.path.empty())
            printText("      %s", model.path.c_str());
        if (model.use == ModelUse::Nothing || model.use == ModelUse::Adapter)
            printText("      %s", model.reason.c_str());
    }
    printText("%zu models, %s on the disk. Name a path with --model.", found.models.size(),
        formatBytes(found.bytes).c_str());
}

void printPlaces(const LocalModels& found)
{
    printText("No models were found. Looked at:");
    for (const LookedPlace& place : found.places)
        printText("  %-12s  %s%s", std::string(name(place.store)).c_str(), place.path.c_str(),
            place.exists ? "" : " (is not there)");
    printText("Add a folder with --folder DIR: model folders with a config.json and GGUF files "
              "are found up to four folders below it.");
}

Status requireFolders(const std::vector<LookedPlace>& places)
{
    for (const LookedPlace& place : places)
        if (place.store == ModelStore::Folder && !place.exists)
            return Status::error(
                ErrorKind::InvalidArgument, "--folder " + place.path + ": there is no such folder");
    return {};
}

int list(const ModelsOptions& options)
{
    const LocalModels found = findLocalModels(usualModelPlaces(options.folders));
    if (const Status status = requireFolders(found.places); !status.ok())
        return fail(status, options.json);
    for (const LookedPlace& place : found.places)
        if (!place.fault.empty())
            say(place.path + ": " + place.fault);
    if (options.json)
        printObjects(found);
    else if (found.models.empty())
        printPlaces(found);
    else
        printTable(found);
    return 0;
}

} // namespace

void addModels(CLI::App& app, Action& action)
{
    auto options = std::make_shared<ModelsOptions>();
    CLI::App* command = app.add_subcommand("models",
        "Models on this machine: caches of Hugging Face, LM Studio and Ollama, and your folders");
    command->add_option("--folder", options->folders, "Look below this folder, too (repeatable)")
        ->allow_extra_args(false);
    command->add_flag("--json", options->json, "One JSON object a model, then the places");
    command->callback([options, &action] { action = [options] { return list(*options); }; });
}

} // namespace mr::app
