// Masters that are put together tensor by tensor.
//
// Threads    One thread.
// Ownership  Borrows the table, which outlives it.
// Errors     DataCorrupt names file, tensor and element of a number that is not finite or has no
//            BF16 half; else those of the reader.

#pragma once

#include "core/model/master.h"
#include "core/model/param_table.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace mr {

// Finds the tensors that a piece of a group meets; a subclass supplies their content.
class TensorReader : public MasterReader
{
public:
    explicit TensorReader(const ParamTable& table);

    Status read(GroupId group, std::int64_t first, const MasterView& out) override;

protected:
    // Elements [first, first + out.high.size()) of ParamTable::tensors[index].
    virtual Status readTensor(std::size_t index, std::int64_t first, const MasterView& out) = 0;

    const std::vector<std::size_t>& tensorsOf(GroupId group) const
    {
        return m_inGroup[static_cast<std::size_t>(group.value)];
    }

    const ParamTable& m_table;

private:
    std::vector<std::vector<std::size_t>> m_inGroup; // into ParamTable::tensors
};

// From numbers in F32, which are checked.
class FloatReader : public TensorReader
{
public:
    using TensorReader::TensorReader;

protected:
    virtual Status readFloats(std::size_t index, std::int64_t first, std::span<float> out) = 0;
    virtual const std::filesystem::path& fileOf(std::size_t index) const = 0;

private:
    Status readTensor(std::size_t index, std::int64_t first, const MasterView& out) final;

    std::vector<float> m_values;
};

// Both halves of a number.
void storeHalves(float value, const MasterView& view, std::size_t i);

} // namespace mr
