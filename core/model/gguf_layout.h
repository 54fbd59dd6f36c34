// GgufLayout: how the tensors of a model lie in a GGUF file: names, order of rows and columns, and
// what is stored for a weight.
//
// Threads  Pure functions.
// Errors   InvalidArgument: the family has no name in such files.
// Units    Elements; rows and columns of the model's matrices.
// Source   reference: export section 5, families_2026 section 5.1.

#pragma once

#include "core/model/gguf_family.h"
#include "core/model/param_table.h"

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// The order of the rows or columns of a matrix in the file, head by head.
struct GgufOrder {
    enum class Kind : std::uint8_t {
        Same,
        Neighbours, // the halves of a head alternate
        Tiled       // heads of one group, then the next, become the first of each group, ...
    };

    Kind kind = Kind::Same;
    std::int64_t first = 0;  // those before it stay
    std::int64_t length = 1; // of a head
    std::int64_t groups = 1; // Tiled
    std::int64_t inGroup = 1;

    // The model's row that the file has at `row`, and the other way round.
    std::int64_t source(std::int64_t row) const noexcept;
    std::int64_t place(std::int64_t row) const noexcept;
    bool isSame() const noexcept { return kind == Kind::Same; }
};

enum class GgufStored : std::uint8_t {
    Weight,
    PlusOne, // 1 + w
    MinusExp // -exp(w)
};

// A tensor of the file, which has rows of one of the model.
struct GgufEntry {
    std::string name;
    std::size_t tensor = 0;    // into ParamTable::tensors
    std::int64_t firstRow = 0; // of that tensor
    std::int64_t rows = 0;
    std::int64_t columns = 0; // 1: a vector
    GgufOrder rowOrder;
    GgufOrder columnOrder;
    GgufStored stored = GgufStored::Weight;
    bool isWide = false; // F32 in every file

    bool isVector() const noexcept { return columns == 1; }
    // The fastest dimension first.
    std::vector<std::int64_t> ne() const;
};

// A tensor that the config alone decides.
struct GgufMade {
    std::string name;
    std::vector<float> values;
};

struct GgufLayout {
    const GgufFamily* family = nullptr;
    std::vector<GgufEntry> entries;
    std::vector<GgufMade> made;
    // The name of the table that inputs of blocks come from; empty: the model has none.
    std::string inputTable;
};

// Rows of the inputs of all blocks, by token.
inline constexpr std::string_view kGgufInputTable = "per_layer_token_embd.weight";

std::string ggufScaleName(std::int64_t block);

// `table` is that of the whole model.
Result<GgufLayout> ggufLayout(const ModelConfig& config, const ParamTable& table);

} // namespace mr
