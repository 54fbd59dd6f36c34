// InputTable: rows of the table that inputs of blocks come from, read from the model's file. It is
// larger than all blocks together, and a micro-batch needs a row for each of its tokens.
//
// Threads  One at a time; blocks on the file.
// Errors   InvalidArgument names the file and the tensor: missing, of another shape or type. Io.
// Source   reference: families_2026 section 2.5.

#pragma once

#include "core/device/tensor.h"
#include "core/model/carried_tensors.h"

#include <cstdint>
#include <span>
#include <vector>

namespace mr {

class InputTable
{
public:
    // Precondition: config.inputsAreOnHost().
    static Result<InputTable> open(const ModelConfig& config);

    // Row ids[t] becomes row t of `out` (T, columns), BF16 or F32, in host memory; further rows of
    // it stay. Allocates nothing.
    Status read(std::span<const std::int32_t> ids, const TensorView& out);

private:
    InputTable(CarriedTensor tensor, SafetensorsReader reader);
    Status readRow(std::int64_t row, const TensorView& out);

    CarriedTensor m_tensor;
    SafetensorsReader m_reader;
    std::vector<float> m_row;
    std::vector<std::int32_t> m_places; // the row of `out` that has an id's row; -1: none so far
};

} // namespace mr
