// A model whose elements are counted as they are read, for the progress of a file that is written.
//
// Threads    One thread; blocks on the reader.
// Ownership  Borrows reader and meter, which outlive it.
// Errors     Those of the reader and of the meter.

#pragma once

#include "core/base/write_progress.h"
#include "core/model/weights.h"

#include <cstddef>
#include <cstdint>

namespace mr {

constexpr std::uint64_t bytesOfElement(ExportType type) noexcept
{
    return type == ExportType::F32 ? sizeof(float) : sizeof(std::uint16_t);
}

class MeteredModel final : public MasterReader
{
public:
    // `type`: of the elements in the file.
    MeteredModel(MasterReader& model, ExportType type, WriteMeter& meter)
        : m_model(model)
        , m_elementBytes(bytesOfElement(type))
        , m_meter(meter)
    {
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        MR_TRY(m_model.read(group, first, out));
        return m_meter.add(m_elementBytes * out.high.size());
    }

private:
    MasterReader& m_model;
    const std::uint64_t m_elementBytes;
    WriteMeter& m_meter;
};

} // namespace mr
