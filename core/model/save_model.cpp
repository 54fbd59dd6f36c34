// saveModel: a folder any Llama loader opens.

#include "core/base/file.h"
#include "core/model/export_plan.h"
#include "core/model/weights.h"
#include "core/model/whole_file.h"

#include <system_error>

namespace mr {

namespace {

namespace fs = std::filesystem;

Status carryFiles(const fs::path& from, const fs::path& folder)
{
    std::error_code error;
    if (from.empty())
        return {};
    if (from.filename() == "vocab.json") {
        MR_TRY(copyWholeFile(from, folder / "vocab.json"));
        return copyWholeFile(from.parent_path() / "merges.txt", folder / "merges.txt");
    }
    if (fs::is_regular_file(from, error))
        return copyWholeFile(
            from, folder / (from.extension() == ".json" ? "tokenizer.json" : "tokenizer.model"));
    if (!fs::is_directory(from, error))
        return Status::error(
            ErrorKind::InvalidArgument, from.string() + ": no tokenizer file or folder is there");
    auto it = fs::directory_iterator(from, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
        const std::string name = it->path().filename().string();
        std::error_code unreadable; // then it is not a file, and nothing is lost
        if (isCarried(name) && fs::is_regular_file(it->path(), unreadable))
            MR_TRY(copyWholeFile(it->path(), folder / name));
    }
    if (error)
        return Status::error(ErrorKind::Io, "list " + from.string() + ": " + error.message());
    return {};
}

} // namespace

Status saveModel(const fs::path& folder, const ModelConfig& config, const ParamTable& table,
    MasterReader& master, ExportType type, const fs::path& carryFrom)
{
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create folder " + folder.string() + ": " + error.message());
    std::error_code differs; // equivalent() fails if carryFrom does not exist: reported later
    if (!carryFrom.empty() && fs::equivalent(folder, carryFrom, differs))
        return Status::error(ErrorKind::InvalidArgument,
            folder.string() + ": saving here would overwrite the model it came from; choose "
                              "another folder");
    MR_TRY(writeShards(folder, table, master, type, kShardBytes));
    MR_TRY(carryFiles(carryFrom, folder));
    return replaceFile(folder / "config.json", withDtype(config.text, type));
}

} // namespace mr
