#include "core/save/folder_export.h"

#include "core/base/file.h"
#include "core/model/gguf_weights.h"
#include "core/model/model_config.h"
#include "core/model/rounded_model.h"
#include "core/save/opened_model.h"
#include "core/save/written_aside.h"

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>

namespace mr {

namespace fs = std::filesystem;

namespace {

// Does the folder hold what `model` reads?
Status readBack(const fs::path& folder, OpenedModel& opened, MasterReader& model)
{
    const ParamTable& table = opened.table();
    MR_ASSIGN(const auto written, openWeights(folder, opened.config(), table));
    MasterPiece mine;
    MasterPiece theirs;
    const NamedTensor* tensor = nullptr;
    const auto compare = [&](std::int64_t first, const MasterView& view) -> Status {
        const MasterView got = theirs.view(std::ssize(view.high));
        MR_TRY(written->read(tensor->group, first, got));
        if (std::ranges::equal(got.high, view.high) && std::ranges::equal(got.low, view.low))
            return {};
        return Status::error(
            ErrorKind::DataCorrupt, folder.string() + ": " + tensor->name +
                                        " was read back with other values than were written");
    };
    for (const NamedTensor& each : table.tensors) {
        tensor = &each;
        MR_TRY(forPieces(model, {each.group, each.first, each.count()}, mine, compare));
    }
    return {};
}

Result<FolderReport> writeFolder(
    const ModelPlace& place, const fs::path& folder, ExportType type, const FolderOptions& options)
{
    OpenedModel opened;
    MR_TRY(opened.open(place, options.original));
    RoundedModel model(opened.table(), opened.whole(), type);
    MR_TRY(saveModel(
        folder, opened.config(), opened.table(), model, type, place.model, options.shardBytes));
    const MergeCount count = opened.count();
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    if (!taught.empty())
        MR_TRY(replaceFile(folder / "chat_template.jinja", taught));
    MR_TRY(readBack(folder, opened, model));
    return FolderReport{type, opened.isNf4(), count};
}

} // namespace

Result<FolderReport> exportFolder(
    const ModelPlace& place, const fs::path& out, const FolderOptions& options)
{
    MR_ASSIGN(const ModelConfig config, readModelConfig(place.model));
    // Of a GGUF file, whose config names no type, BF16.
    const bool isWide =
        config.dtype == "float32" || (config.dtype.empty() && ggufOf(place.model).empty());
    const ExportType type = options.type.value_or(isWide ? ExportType::F32 : ExportType::BF16);
    FolderReport report;
    MR_TRY(writeAside(out, [&](const fs::path& folder) -> Status {
        MR_ASSIGN(report, writeFolder(place, folder, type, options));
        return {};
    }));
    return report;
}

} // namespace mr
