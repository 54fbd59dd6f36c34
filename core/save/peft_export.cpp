#include "core/base/file.h"
#include "core/base/hub_folder.h"
#include "core/model/peft_folder.h"
#include "core/model/rounded_model.h"
#include "core/save/adapter_export.h"
#include "core/save/metered_model.h"
#include "core/save/opened_model.h"
#include "core/save/written_aside.h"

namespace mr {
namespace {

namespace fs = std::filesystem;

// "Qwen/Qwen3-0.6B" of ".../models--Qwen--Qwen3-0.6B/snapshots/REVISION"; any other path as it is.
std::string nameOnHub(const std::string& model)
{
    const fs::path folder = fs::path(model).lexically_normal();
    if (folder.parent_path().filename() != "snapshots")
        return model;
    const std::string name =
        hubNameOf("models", folder.parent_path().parent_path().filename().string());
    return name.empty() ? model : name;
}

std::int64_t modulesOf(const ParamTable& table)
{
    std::int64_t modules = 0;
    for (const auto& group : table.frozen->adapters)
        modules += std::ssize(group);
    return modules;
}

} // namespace

Result<AdapterReport> exportPeft(
    const ModelPlace& place, const fs::path& out, ExportType type, const WriteProgress& progress)
{
    if (place.adapter.empty())
        return Status::error(ErrorKind::InvalidArgument,
            place.model + ": has no adapter; export it --to safetensors");
    OpenedModel opened;
    MR_TRY(opened.open(place, false));
    MR_ASSIGN(PeftConfig config, readPeftConfig(place.adapter));
    config.base = nameOnHub(place.model);
    const ParamTable& table = opened.trainedTable();
    RoundedModel rounded(table, opened.adapter(), type);
    WriteMeter meter(static_cast<std::uint64_t>(table.parameters) * bytesOfElement(type), progress);
    MeteredModel adapter(rounded, type, meter);
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    AdapterReport report{modulesOf(table), config.base, 0};
    const auto write = [&](const fs::path& folder) -> Status {
        MR_TRY(savePeft(folder, config, table, adapter, type));
        if (!taught.empty())
            MR_TRY(replaceFile(folder / "chat_template.jinja", taught));
        report.bytes = bytesOfFiles(folder);
        MR_ASSIGN(const auto written, openPeftWeights(folder, table));
        return compareWritten(folder, table, adapter, *written);
    };
    MR_TRY(writeAside(out, write));
    if (config.settings.nf4Base)
        report.notes.emplace_back("It was trained beside the model in NF4: load that in 4 bits "
                                  "(bitsandbytes, nf4) to have its answers.");
    return report;
}

} // namespace mr
