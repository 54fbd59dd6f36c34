#include "core/save/folder_export.h"

#include "core/base/file.h"
#include "core/model/gguf_weights.h"
#include "core/model/model_config.h"
#include "core/model/rounded_model.h"
#include "core/save/metered_model.h"
#include "core/save/opened_model.h"
#include "core/save/written_aside.h"

#include <string>
#include <system_error>

namespace mr {

namespace fs = std::filesystem;

namespace {

Result<FolderReport> writeFolder(
    const ModelPlace& place, const fs::path& folder, ExportType type, const FolderOptions& options)
{
    OpenedModel opened;
    MR_TRY(opened.open(place, options.original));
    RoundedModel rounded(opened.table(), opened.whole(), type);
    const auto elements = static_cast<std::uint64_t>(opened.table().parameters);
    WriteMeter meter(elements * bytesOfElement(type), options.progress);
    MeteredModel model(rounded, type, meter);
    MR_TRY(saveModel(
        folder, opened.config(), opened.table(), model, type, place.model, options.shardBytes));
    const MergeCount count = opened.count();
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    if (!taught.empty())
        MR_TRY(replaceFile(folder / "chat_template.jinja", taught));
    MR_ASSIGN(const auto written, openWeights(folder, opened.config(), opened.table()));
    MR_TRY(compareWritten(folder, opened.table(), model, *written));
    return FolderReport{type, opened.isNf4(), count, bytesOfFiles(folder)};
}

} // namespace

Result<FolderReport> exportFolder(
    const ModelPlace& place, const fs::path& out, const FolderOptions& options)
{
    MR_ASSIGN(const ModelConfig config, readModelConfig(place.model));
    // The config of a GGUF file names no type; its weights become BF16.
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
