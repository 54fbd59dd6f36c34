// saveModel: a folder any Llama loader opens.

#include "core/base/file.h"
#include "core/base/whole_file.h"
#include "core/model/export_plan.h"
#include "core/model/weights.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <system_error>

namespace mr {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostJsonBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostSmallBytes = std::uint64_t{1} << 20;

bool isBelow(const fs::path& file, const fs::path& folder)
{
    return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
           folder.end();
}

// A cache of the Hub keeps the files of models--OWNER--NAME/snapshots/REVISION as links to
// models--OWNER--NAME/blobs.
bool isInItsCache(const fs::path& target, const fs::path& folder)
{
    const fs::path model = folder.parent_path().parent_path();
    return folder.parent_path().filename() == "snapshots" &&
           model.filename().string().starts_with("models--") && isBelow(target, model / "blobs");
}

// A downloaded folder may hold a link to a private file of the user: the copy would be published
// with the model.
Status refuseLinkOutside(const fs::path& file)
{
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(file, error)))
        return {};
    const fs::path target = fs::canonical(file, error);
    const fs::path folder = fs::canonical(file.parent_path(), error);
    if (!error && (isBelow(target, folder) || isInItsCache(target, folder)))
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        file.string() + ": is a link that leads out of the model folder, to " + target.string() +
            ", and would be copied into the trained model; put the file itself there, or remove "
            "the link");
}

// Longer ones are looked at before the run only.
Status refuseOtherThanJson(const fs::path& file, std::uint64_t mostBytes)
{
    std::error_code error;
    if (file.extension() != ".json" || fs::file_size(file, error) > mostBytes || error)
        return {};
    MR_ASSIGN(auto text, readWholeFile(file, mostBytes));
    if (nlohmann::json::accept(text))
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        file.string() + ": is not JSON, and would be copied into the trained model; mend or "
                        "remove it");
}

// Calls `take` with each file of the folder that a saved model carries along.
template <typename Take>
Status eachCarried(const fs::path& folder, Take take)
{
    std::error_code error;
    auto it = fs::directory_iterator(folder, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
        std::error_code unreadable; // then it is not a file, and nothing is lost
        if (isCarried(it->path().filename().string()) &&
            fs::is_regular_file(it->path(), unreadable))
            MR_TRY(take(it->path()));
    }
    if (error)
        return Status::error(ErrorKind::Io, "list " + folder.string() + ": " + error.message());
    return {};
}

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
    return eachCarried(from, [&](const fs::path& file) -> Status {
        MR_TRY(refuseLinkOutside(file));
        MR_TRY(refuseOtherThanJson(file, kMostSmallBytes));
        return copyWholeFile(file, folder / file.filename());
    });
}

} // namespace

Status checkCarriedFiles(const fs::path& carryFrom)
{
    std::error_code error;
    if (!fs::is_directory(carryFrom, error))
        return {};
    return eachCarried(carryFrom, [](const fs::path& file) -> Status {
        MR_TRY(refuseLinkOutside(file));
        return refuseOtherThanJson(file, kMostJsonBytes);
    });
}

Status saveModel(const fs::path& folder, const ModelConfig& config, const ParamTable& table,
    MasterReader& master, ExportType type, const fs::path& carryFrom, std::uint64_t shardBytes)
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
    MR_TRY(writeShards(folder, table, master, type, shardBytes));
    MR_TRY(carryFiles(carryFrom, folder));
    const bool isQuantised = config.isNf4 || config.isFp8;
    const std::string text = isQuantised ? withoutQuantisation(config.text) : config.text;
    return replaceFile(folder / "config.json", withDtype(text, type));
}

} // namespace mr
