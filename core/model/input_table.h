// InputTable: rows of the table that inputs of blocks come from, read from the model's file:
// safetensors, or the GGUF file that its folder stands for. It is larger than all blocks together,
// and a micro-batch needs a row for each of its tokens.
//
// Threads  One at a time; blocks on the file.
// Errors   InvalidArgument names the file and the tensor: missing, of another shape or type. Io.
// Source   reference: families_2026 section 2.5.

#pragma once

#include "core/device/tensor.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mr {

struct ModelConfig;

// The table (inputVocab, inputColumns()) where it lies.
struct InputTableRows {
    // Elements [first, first + out.size()).
    std::function<Status(std::int64_t first, std::span<float> out)> floats;
    // Bytes of one row; empty: the file has another type than BF16.
    std::function<Status(std::int64_t row, std::span<std::byte> out)> bf16;
};

// Precondition: config.inputsAreOnHost().
Result<InputTableRows> openInputTable(const ModelConfig& config);

class InputTable
{
public:
    // Precondition: config.inputsAreOnHost().
    static Result<InputTable> open(const ModelConfig& config);

    // Row ids[t] becomes row t of `out` (T, columns), BF16 or F32, in host memory; further rows of
    // it stay. Allocates nothing, but where a GGUF file has blocks that are longer than a row.
    Status read(std::span<const std::int32_t> ids, const TensorView& out);

private:
    InputTable(const ModelConfig& config, InputTableRows rows);
    Status readRow(std::int64_t row, const TensorView& out);

    InputTableRows m_rows;
    std::vector<float> m_row;
    std::vector<std::int32_t> m_places; // the row of `out` that has an id's row; -1: none so far
};

} // namespace mr
