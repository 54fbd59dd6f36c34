#include "core/step/constant_tables.h"

#include <array>
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
    m_turnedFor = m_memory.constants.cosTable.dims[0];
    return copy();
}

Result<bool> ConstantTables::turnFor(std::int64_t tokens)
{
    const RopeScaling& scaling = m_config.ropeScaling;
    if (!scaling.dependsOnLength())
        return false;
    const RopeShape shape = m_config.ropeShape();
    const RopeFrequencies before = ropeFrequencies(scaling, shape, m_turnedFor);
    m_turnedFor = tokens;
    if (ropeFrequencies(scaling, shape, tokens).inverse == before.inverse)
        return false;
    MR_TRY(copy());
    return true;
}

Status ConstantTables::copy()
{
    const ModelConstants& device = m_memory.constants;
    ModelConstants host = device;
    const std::array<std::pair<const TensorView*, TensorView*>, 4> tables = {
        {{&device.cosTable, &host.cosTable}, {&device.sinTable, &host.sinTable},
            {&device.localCosTable, &host.localCosTable},
            {&device.localSinTable, &host.localSinTable}}};
    std::array<std::vector<std::byte>, 4> bytes;
    for (std::size_t i = 0; i < tables.size(); ++i)
        if (tables[i].first->data != nullptr) {
            bytes[i].resize(tables[i].first->bytes());
            tables[i].second->data = bytes[i].data();
        }
    fillConstants(m_config, m_turnedFor, host);
    for (std::size_t i = 0; i < tables.size(); ++i)
        MR_TRY(m_copier.toDevice(tables[i].first->data, bytes[i]));
    return {};
}

} // namespace mr
