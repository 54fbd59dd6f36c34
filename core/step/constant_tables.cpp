#include "core/step/constant_tables.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mr {

ConstantTables::ConstantTables(
    const RunMemory& memory, const ModelConfig& config, BlockingCopier& copier)
    : m_memory(memory)
    , m_config(config)
    , m_copier(copier)
{
}

Status ConstantTables::prepare()
{
    m_turnedFor = m_memory.constants.ropes.front().cosines.dims[0];
    return copy();
}

Result<bool> ConstantTables::turnFor(std::int64_t tokens)
{
    const std::int64_t before = std::exchange(m_turnedFor, tokens);
    const auto differs = [&](const Rope& rope) {
        const auto turns = [&](std::int64_t longest) {
            return ropeFrequencies(rope.scaling, m_config.shapeOf(rope), longest).inverse;
        };
        return rope.scaling.dependsOnLength() && turns(before) != turns(tokens);
    };
    if (std::ranges::none_of(m_config.ropes, differs))
        return false;
    MR_TRY(copy());
    return true;
}

Status ConstantTables::copy()
{
    ModelConstants host = m_memory.constants;
    std::vector<std::pair<std::byte*, std::vector<std::byte>>> tables; // on the device, here
    const auto bringHere = [&tables](TensorView& view) {
        if (view.data == nullptr)
            return;
        tables.emplace_back(view.data, view.bytes());
        view.data = tables.back().second.data();
    };
    for (RopeTables& rope : host.ropes)
        for (TensorView* view : {&rope.cosines, &rope.sines, &rope.queryCosines, &rope.querySines})
            bringHere(*view);
    bringHere(host.ones);
    fillConstants(m_config, m_turnedFor, host);
    for (const auto& [to, bytes] : tables)
        MR_TRY(m_copier.toDevice(to, bytes));
    return {};
}

} // namespace mr
