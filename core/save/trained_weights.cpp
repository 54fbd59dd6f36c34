#include "core/save/trained_weights.h"

#include "core/base/file.h"
#include "core/model/frozen_model.h"
#include "core/model/peft_folder.h"
#include "core/model/weights.h"
#include "core/save/turned_groups.h"
#include "core/step/run_master.h"

namespace mr {
namespace fs = std::filesystem;
namespace {

Status saveWeights(const CheckpointContext& context, const fs::path& folder, MasterReader& trained)
{
    const ParamTable& table = context.table;
    if (isAdapter(table))
        return savePeft(folder,
            {table.frozen->settings, context.carryFrom.string(), context.baseHash,
                context.memory.dropout()},
            table, trained, ExportType::F32);
    const auto whole = wholeMaster(context.executor, context.memory, trained);
    return saveModel(folder, context.config, wholeModel(table), isInTurns(table) ? trained : *whole,
        context.memory.compute() == DType::F32 ? ExportType::F32 : ExportType::BF16,
        context.carryFrom);
}

constexpr const char* kBlock = "block";

fs::path blockFile(const fs::path& parent)
{
    return parent / kBlock / "block.safetensors";
}

// The group that is trained; -1: none is.
MasterRange trainedGroup(const ParamTable& table)
{
    for (std::size_t g = 0; g < table.groups.size(); ++g)
        if (table.groups[g].elements > 0)
            return {GroupId{static_cast<std::int32_t>(g)}, 0, table.groups[g].elements};
    return {};
}

} // namespace

std::string trainedFolder(const ParamTable& table)
{
    return isAdapter(table) ? "adapter" : "model";
}

Status saveTrained(const CheckpointContext& context, const fs::path& parent, MasterReader& trained)
{
    const fs::path folder = parent / trainedFolder(context.table);
    MR_TRY(saveWeights(context, folder, trained));
    return context.chatTemplate.empty()
               ? Status()
               : replaceFile(folder / "chat_template.jinja", context.chatTemplate);
}

Status saveForCheckpoint(
    const CheckpointContext& context, const fs::path& parent, MasterReader& trained)
{
    if (!isInTurns(context.table))
        return saveTrained(context, parent, trained);
    std::error_code error;
    fs::create_directories(parent / kBlock, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create " + (parent / kBlock).string() + ": " + error.message());
    return writeGroup(
        blockFile(parent), trainedGroup(context.table), context.memory.compute(), trained);
}

Status loadTrained(const CheckpointContext& context, const fs::path& parent)
{
    if (isInTurns(context.table)) {
        MR_ASSIGN(const auto block, openGroup(blockFile(parent)));
        return installMaster(context.executor, context.memory, *block);
    }
    const fs::path folder = parent / trainedFolder(context.table);
    if (isAdapter(context.table)) {
        MR_ASSIGN(const auto adapter, openPeftWeights(folder, context.table));
        return installMaster(context.executor, context.memory, *adapter);
    }
    MR_ASSIGN(const auto model, openWeights(folder, context.config, wholeModel(context.table)));
    MR_TRY(installMaster(context.executor, context.memory, *model));
    return installFrozen(context.executor, context.table, *model).status();
}

} // namespace mr
