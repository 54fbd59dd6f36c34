#include "app/compose.h"

#include "core/exchange/gguf_folder.h"

#include <millrace/run_reader.h>

#include <array>
#include <filesystem>

namespace mr::app {

Result<std::unique_ptr<RunStore>> openStore(const std::string& database)
{
    return RunStore::open(database.empty() ? defaultDatabasePath() : database);
}

Result<std::string> folderToTrainFrom(const std::string& model)
{
    if (!isGgufFile(model))
        return model;
    const std::filesystem::path data = std::filesystem::path(defaultDatabasePath()).parent_path();
    MR_ASSIGN(const std::filesystem::path folder, ggufFolder(model, data / "gguf"));
    return folder.string();
}

std::string sampleFolder()
{
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    const std::array<fs::path, 2> places = {
        program / "../share/millrace/sample", fs::path(MR_SOURCE_DIR) / "resources" / "sample"};
    for (const fs::path& place : places)
        if (fs::exists(place / "model" / "config.json", error))
            return fs::canonical(place, error).string();
    return {};
}

} // namespace mr::app
