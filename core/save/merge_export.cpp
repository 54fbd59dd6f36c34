#include "core/save/merge_export.h"

#include "core/base/file.h"
#include "core/model/model_config.h"
#include "core/save/opened_model.h"

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>

namespace mr {
namespace fs = std::filesystem;
namespace {

Status refuse(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

// Does the folder hold what `merged` computes?
Status readBack(const fs::path& folder, OpenedModel& opened, ExportType type)
{
    const ParamTable& model = opened.table();
    MR_ASSIGN(const auto written, openWeights(folder, opened.config(), model));
    MergedModel merged = opened.merged(type);
    MasterPiece mine;
    MasterPiece theirs;
    const NamedTensor* tensor = nullptr;
    const auto compare = [&](std::int64_t first, const MasterView& view) -> Status {
        const MasterView got = theirs.view(std::ssize(view.high));
        MR_TRY(written->read(tensor->group, first, got));
        if (std::ranges::equal(got.high, view.high) &&
            ((type == ExportType::BF16 && !tensor->isWide) ||
                std::ranges::equal(got.low, view.low)))
            return {};
        return Status::error(
            ErrorKind::DataCorrupt, folder.string() + ": " + tensor->name +
                                        " was read back with other values than were written");
    };
    for (const NamedTensor& each : model.tensors) {
        tensor = &each;
        MR_TRY(forPieces(merged, {each.group, each.first, each.count()}, mine, compare));
    }
    return {};
}

Result<MergeReport> writeMerged(
    const ModelPlace& place, const fs::path& folder, ExportType type, bool original)
{
    OpenedModel opened;
    MR_TRY(opened.open(place, original));
    MergedModel merged = opened.merged(type);
    MR_TRY(saveModel(folder, opened.config(), opened.table(), merged, type, place.model));
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    if (!taught.empty())
        MR_TRY(replaceFile(folder / "chat_template.jinja", taught));
    MR_TRY(readBack(folder, opened, type));
    return MergeReport{type, opened.isNf4(), merged.count()};
}

} // namespace

Result<MergeReport> exportMerged(
    const ModelPlace& place, const fs::path& out, const MergeOptions& options)
{
    if (place.adapter.empty())
        return refuse(place.model + ": has no adapter to merge; it is a model folder already");
    std::error_code error;
    if (fs::exists(out, error))
        return refuse(out.string() + ": is there already; name a folder that is not");
    MR_ASSIGN(const ModelConfig config, readModelConfig(place.model));
    const bool isWide = config.dtype == "float32" || config.dtype.empty();
    const ExportType as = options.type.value_or(isWide ? ExportType::F32 : ExportType::BF16);
    const fs::path whole = fs::absolute(out, error).lexically_normal();
    const fs::path folder = whole.has_filename() ? whole : whole.parent_path();
    const fs::path temporary = folder.parent_path() / ("." + folder.filename().string() + ".part");
    fs::remove_all(temporary, error);
    auto report = writeMerged(place, temporary, as, options.original);
    if (report.ok())
        fs::rename(temporary, folder, error);
    if (!report.ok() || error) {
        const std::string why = error.message();
        fs::remove_all(temporary, error);
        return report.ok()
                   ? Status::error(ErrorKind::Io, "rename to " + folder.string() + ": " + why)
                   : report.status();
    }
    MR_TRY(syncFolder(folder.parent_path()));
    return report;
}

} // namespace mr
