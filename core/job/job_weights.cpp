#include "core/job/job_weights.h"

#include "core/base/file.h"
#include "core/model/peft_folder.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "core/save/metered_model.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

fs::path stateFile(const JobSource& source)
{
    return source.checkpoint / "state" / "state.safetensors";
}

std::string planeName(const char* plane, GroupId group)
{
    return std::string(plane) + std::to_string(group.value);
}

std::int64_t elementsOf(const ParamTable& table, GroupId group)
{
    return table.groups[static_cast<std::size_t>(group.value)].elements;
}

// A plane of a group has this type, and a value for each element.
Status checkPlane(const SafetensorsReader& state, const std::string& name, const char* dtype,
    std::int64_t elements)
{
    const auto found = state.entries().find(name);
    if (found != state.entries().end() && found->second.dtype == dtype &&
        found->second.shape == std::vector{elements})
        return {};
    return Status::error(ErrorKind::DataCorrupt,
        state.path().string() + ": " + name + " is missing or of another length");
}

class CheckpointMaster final : public MasterReader
{
public:
    CheckpointMaster(
        const ParamTable& trained, std::unique_ptr<MasterReader> model, SafetensorsReader state)
        : m_trained(trained)
        , m_model(std::move(model))
        , m_state(std::move(state))
    {
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        MR_TRY(m_model->read(group, first, out));
        if (out.low.empty() || elementsOf(m_trained, group) == 0)
            return {};
        const auto offset = sizeof(std::int16_t) * static_cast<std::uint64_t>(first);
        return m_state.readBytes(planeName("low.", group), offset, std::as_writable_bytes(out.low));
    }

private:
    const ParamTable& m_trained;
    std::unique_ptr<MasterReader> m_model;
    SafetensorsReader m_state;
};

SafetensorSource momentOf(
    const JobTensor& tensor, const char* plane, const SafetensorsReader& state, WriteMeter& meter)
{
    SafetensorSource source;
    source.name = tensor.name;
    source.dtype = "F32";
    source.shape = tensor.shape;
    source.bytes = sizeof(float) * static_cast<std::uint64_t>(tensor.range.count);
    const std::uint64_t begin = sizeof(float) * static_cast<std::uint64_t>(tensor.range.first);
    source.fill = [&state, &meter, begin, name = planeName(plane, tensor.range.group)](
                      std::uint64_t offset, std::span<std::byte> out) -> Status {
        MR_TRY(state.readBytes(name, begin + offset, out));
        return meter.add(out.size());
    };
    return source;
}

Status writeMoment(const JobSource& source, const SafetensorsReader& state, const char* plane,
    const fs::path& file, WriteMeter& meter)
{
    const ParamTable& table = source.setup.table;
    std::vector<SafetensorSource> sources;
    for (const JobTensor& tensor : jobTensors(table)) {
        MR_TRY(checkPlane(state, planeName(plane, tensor.range.group), "F32",
            elementsOf(table, tensor.range.group)));
        sources.push_back(momentOf(tensor, plane, state, meter));
    }
    return writeSafetensors(file, sources);
}

// The type in which the model beside an adapter is written: its own, if that is exact.
ExportType typeOfBase(const ModelConfig& model)
{
    const bool isHalf = model.dtype == "bfloat16" && !model.isNf4 && !model.isFp8;
    return isHalf ? ExportType::BF16 : ExportType::F32;
}

Status writeBase(
    const JobSource& source, const fs::path& job, PeftConfig& config, WriteMeter& meter)
{
    const RunSpec& spec = source.spec();
    const ModelConfig& model = source.setup.config;
    const ParamTable& table = wholeModel(source.setup.table);
    MR_ASSIGN(const auto base, openWeights(spec.modelDir, model, table));
    MR_ASSIGN(config.baseHash, weightsHash(table, *base));
    if (!source.progress.baseHash.empty() && source.progress.baseHash != config.baseHash)
        return Status::error(ErrorKind::InvalidArgument,
            spec.modelDir +
                ": is not the model the run began with (its weights differ); put that back");
    const ExportType type = typeOfBase(model);
    MeteredModel metered(*base, type, meter);
    return saveModel(job / "model", model, table, metered, type, spec.modelDir);
}

Status writeAdapter(const JobSource& source, const fs::path& job, WriteMeter& meter)
{
    const ParamTable& table = source.setup.table;
    PeftConfig config{table.frozen->settings, "model", {}, source.spec().dropout};
    MR_TRY(writeBase(source, job, config, meter));
    MR_ASSIGN(const auto adapter, openPeftWeights(source.checkpoint / "adapter", table));
    MeteredModel metered(*adapter, ExportType::F32, meter);
    return savePeft(job / "adapter", config, table, metered, ExportType::F32);
}

// The chat template that was taught, beside what was trained.
Status writeTemplate(const JobSource& source, const fs::path& folder)
{
    return source.data.chatTemplate.empty()
               ? Status()
               : replaceFile(folder / "chat_template.jinja", source.data.chatTemplate);
}

} // namespace

Result<std::unique_ptr<MasterReader>> openCheckpointMaster(const JobSource& source)
{
    const ParamTable& trained = source.setup.table;
    const ParamTable& model = wholeModel(trained);
    MR_ASSIGN(auto weights, openWeights(source.checkpoint / "model", source.setup.config, model));
    MR_ASSIGN(auto state, SafetensorsReader::open(stateFile(source)));
    for (std::size_t g = 0; g < trained.groups.size(); ++g) {
        const GroupId group{static_cast<std::int32_t>(g)};
        if (elementsOf(trained, group) > 0)
            MR_TRY(checkPlane(state, planeName("low.", group), "I16", elementsOf(trained, group)));
    }
    return std::unique_ptr<MasterReader>(
        std::make_unique<CheckpointMaster>(trained, std::move(weights), std::move(state)));
}

std::vector<JobTensor> jobTensors(const ParamTable& trained)
{
    std::vector<JobTensor> tensors;
    for (const NamedTensor& tensor : trained.tensors)
        tensors.push_back(
            {isAdapter(trained) ? tensor.name : nameInMemory(trained, tensor.name), tensor.shape,
                {tensor.group, tensor.first, tensor.count()}, trained.slotOf(tensor).decayed});
    return tensors;
}

std::uint64_t jobBytes(const JobSource& source)
{
    const ParamTable& table = source.setup.table;
    const ExportType type = isAdapter(table) ? typeOfBase(source.setup.config) : ExportType::F32;
    const auto trained = static_cast<std::uint64_t>(table.parameters);
    const std::uint64_t adapter = isAdapter(table) ? sizeof(float) * trained : 0;
    const std::uint64_t moments = 2 * sizeof(float) * trained;
    return static_cast<std::uint64_t>(wholeModel(table).parameters) * bytesOfElement(type) +
           adapter + moments;
}

Status writeJobModel(const JobSource& source, const fs::path& job, WriteMeter& meter)
{
    const ParamTable& table = source.setup.table;
    if (isAdapter(table)) {
        MR_TRY(writeAdapter(source, job, meter));
        return writeTemplate(source, job / "adapter");
    }
    MR_ASSIGN(const auto master, openCheckpointMaster(source));
    MeteredModel metered(*master, ExportType::F32, meter);
    MR_TRY(saveModel(job / "model", source.setup.config, wholeModel(table), metered,
        ExportType::F32, source.checkpoint / "model"));
    return writeTemplate(source, job / "model");
}

Status writeJobMoments(const JobSource& source, const fs::path& folder, WriteMeter& meter)
{
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "create folder " + folder.string() + ": " + error.message());
    MR_ASSIGN(const auto state, SafetensorsReader::open(stateFile(source)));
    MR_TRY(writeMoment(source, state, "m.", folder / "exp_avg.safetensors", meter));
    return writeMoment(source, state, "v.", folder / "exp_avg_sq.safetensors", meter);
}

} // namespace mr
