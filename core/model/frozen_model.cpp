#include "core/model/frozen_model.h"

#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/model/adapter_modules.h"
#include "core/model/saved_modules.h"
#include "core/model/weights.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace mr {

namespace {

void addTensor(ParamTable& table, const std::string& module, const char* matrix, std::int64_t first,
    std::vector<std::int64_t> shape)
{
    table.tensors.push_back({std::string(kPeftPrefix) + module + matrix,
        GroupId{static_cast<std::int32_t>(table.groups.size()) - 1}, first, std::move(shape)});
}

// A of the modules of one product in one slot, then each module's B.
void placeProduct(ParamTable& table, std::span<AdapterModule> modules)
{
    std::int64_t ranks = 0;
    for (AdapterModule& module : modules)
        module.firstRank = std::exchange(ranks, ranks + module.rank);
    const std::int64_t in = modules.front().in;
    const std::int64_t a = addSlot(table, SlotKind::AdapterA, ranks, in, 2).first;
    for (AdapterModule& module : modules) {
        module.a = a + module.firstRank * in;
        module.b = addSlot(table, SlotKind::AdapterB, module.rows, module.rank, 2).first;
        addTensor(table, module.name, ".lora_A.weight", module.a, {module.rank, in});
        addTensor(table, module.name, ".lora_B.weight", module.b, {module.rows, module.rank});
    }
}

// Runs of modules with the same product.
void placeGroup(ParamTable& table, std::vector<AdapterModule>& modules)
{
    for (std::size_t first = 0; first < modules.size();) {
        const auto isOther = [&](const AdapterModule& module) {
            return module.product != modules[first].product;
        };
        const auto begin = modules.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = std::find_if(begin, modules.end(), isOther);
        placeProduct(table, {begin, end});
        first = static_cast<std::size_t>(end - modules.begin());
    }
}

// Behind the matrices: they have no weight decay, so the two are one run of updates each.
void placeMagnitudes(ParamTable& table, std::vector<AdapterModule>& modules)
{
    for (AdapterModule& module : modules) {
        module.magnitude = addSlot(table, SlotKind::AdapterMagnitude, module.rows, 1, 1).first;
        addTensor(table, module.name, ".lora_magnitude_vector", module.magnitude, {module.rows});
    }
}

ParamTable emptyTable(const ParamTable& model)
{
    ParamTable table;
    table.firstNorm = model.firstNorm;
    for (const ParamGroup& group : model.groups)
        table.groups.push_back({group.name, 0, {}});
    return table;
}

// All of it.
std::shared_ptr<FrozenModel> frozenModel(const ParamTable& model)
{
    auto frozen = std::make_shared<FrozenModel>();
    frozen->model = model;
    for (const ParamGroup& group : model.groups)
        frozen->elements.push_back(group.elements);
    frozen->adapters.resize(model.groups.size());
    frozen->replaced.resize(model.groups.size());
    return frozen;
}

// The groups are trained.
ParamTable tableOf(const ParamTable& model, const std::vector<GroupId>& groups, bool inTurns)
{
    auto frozen = frozenModel(model);
    frozen->inTurns = inTurns;
    for (const GroupId group : groups)
        frozen->elements[static_cast<std::size_t>(group.value)] = 0;
    ParamTable table = emptyTable(model);
    for (std::size_t g = 0; g < model.groups.size(); ++g) {
        if (frozen->elements[g] > 0)
            continue;
        table.groups[g] = model.groups[g];
        for (const ParamSlot& slot : model.groups[g].paramSlots)
            table.parameters += slot.count();
    }
    std::ranges::copy_if(
        model.tensors, std::back_inserter(table.tensors), [&](const NamedTensor& tensor) {
            return frozen->elements[static_cast<std::size_t>(tensor.group.value)] == 0;
        });
    table.frozen = std::move(frozen);
    return table;
}

// Uniform in +-bound.
void fillUniform(std::uint64_t key, float bound, std::int64_t first, const MasterView& out)
{
    for (std::size_t i = 0; i < out.high.size(); ++i) {
        const auto at = static_cast<std::uint64_t>(first) + i;
        const std::uint32_t word = philox(key, at / 4)[at % 4];
        const double unit = (static_cast<double>(word) + 0.5) * 0x1p-31 - 1.0;
        const auto value = static_cast<float>(bound * unit);
        out.high[i] = highHalf(value);
        if (!out.low.empty())
            out.low[i] = lowHalf(value);
    }
}

} // namespace

const ParamTable& wholeModel(const ParamTable& trained) noexcept
{
    return trained.frozen ? trained.frozen->model : trained;
}

bool isAdapter(const ParamTable& trained) noexcept
{
    return mostAdapterRanks(trained) > 0;
}

const ParamTable& modelTable(const ParamTable& trained, GroupId group) noexcept
{
    return frozenElements(trained, group) > 0 ? trained.frozen->model : trained;
}

std::int64_t frozenElements(const ParamTable& trained, GroupId group) noexcept
{
    return trained.frozen ? trained.frozen->elements[static_cast<std::size_t>(group.value)] : 0;
}

std::int64_t mostAdapterRanks(const ParamTable& trained) noexcept
{
    std::int64_t most = 0;
    if (trained.frozen)
        for (const auto& modules : trained.frozen->adapters)
            for (const AdapterModule& module : modules)
                most = std::max(most, module.firstRank + module.rank);
    return most;
}

void setAdapterMemory(const ParamTable& trained, double dropout, MicroShape& micro) noexcept
{
    micro.adapterRanks = mostAdapterRanks(trained);
    micro.dropout = dropout;
    micro.dropoutColumns = 0;
    micro.doraColumns = 0;
    const ParamSlot* rows = trained.find(GroupId{0}, SlotKind::TokenRows);
    micro.tokenRows = rows ? rows->rows : 0;
    if (!trained.frozen)
        return;
    const FrozenModel& frozen = *trained.frozen;
    for (std::size_t g = 0; g < frozen.adapters.size(); ++g)
        for (const AdapterModule& module : frozen.adapters[g]) {
            if (dropout > 0.0)
                micro.dropoutColumns = std::max(micro.dropoutColumns, module.in);
            const GroupId group{static_cast<std::int32_t>(g)};
            if (frozen.settings.dora)
                micro.doraColumns =
                    std::max(micro.doraColumns, frozen.model.find(group, module.product)->rows);
        }
}

Result<ParamTable> trainedLayers(const ParamTable& model, const std::vector<GroupId>& groups)
{
    for (const GroupId group : groups)
        if (group.value < 0 || static_cast<std::size_t>(group.value) >= model.groups.size())
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("the model has no layer {} to train", group.value));
    if (groups.empty())
        return Status::error(ErrorKind::InvalidArgument, "no layer to train is named");
    return tableOf(model, groups, false);
}

ParamTable turnTable(const ParamTable& model, GroupId group)
{
    return tableOf(model, {group}, true);
}

ParamTable frozenTable(const ParamTable& model)
{
    return tableOf(model, {}, true);
}

bool isInTurns(const ParamTable& trained) noexcept
{
    return trained.frozen && trained.frozen->inTurns;
}

Result<ParamTable> adapterTable(const ParamTable& model, const AdapterSettings& settings)
{
    MR_ASSIGN(const std::vector<AdapterModule> modules, adapterModules(model, settings));
    MR_TRY(checkSaved(model, settings));
    auto frozen = frozenModel(model);
    frozen->settings = settings;
    ParamTable table;
    table.firstNorm = model.firstNorm;
    for (std::size_t g = 0; g < model.groups.size(); ++g) {
        table.groups.push_back({model.groups[g].name, 0, {}});
        std::vector<AdapterModule>& own = frozen->adapters[g];
        std::ranges::copy_if(modules, std::back_inserter(own), [&](const AdapterModule& module) {
            return blockOf(module.name) == static_cast<std::int64_t>(g) - 1;
        });
        placeGroup(table, own);
        if (settings.dora)
            placeMagnitudes(table, own);
        placeSaved(*frozen, table);
    }
    table.frozen = std::move(frozen);
    return table;
}

std::unique_ptr<MasterReader> initialAdapter(const ParamTable& table, std::uint64_t seed)
{
    return madeWeights(
        table, [seed](const NamedTensor& tensor, std::int64_t first, const MasterView& out) {
            if (!tensor.name.ends_with(".lora_A.weight"))
                return; // zero
            const std::uint64_t key = XXH3_64bits(tensor.name.data(), tensor.name.size()) ^ seed;
            const double in = static_cast<double>(tensor.shape[1]);
            fillUniform(key, static_cast<float>(1.0 / std::sqrt(in)), first, out);
        });
}

} // namespace mr
