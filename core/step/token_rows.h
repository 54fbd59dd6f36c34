// TokenRows: rows of the embedding that are trained beside an adapter (saved_modules.h).
//
// They are trained apart and copied to their places in the embedding, which is frozen, before a
// pass reads it. Their gradient is that of a table of these rows alone.
//
// Threads    Engine thread.
// Ownership  Borrows the views.
// Errors     Those of the stream.

#pragma once

#include "core/device/device.h"
#include "core/model/layout.h"
#include "core/model/saved_modules.h"

#include <millrace/status.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mr {

class TokenRows
{
public:
    TokenRows() = default; // none
    // `weights`: the trained rows, c; `embedding`: (V, H), c; `gradient`: of the rows, data null in
    // an evaluation. `padToken` learns nothing from being read; -1: none.
    TokenRows(const ParamTable& trained, std::int64_t padToken, const TensorView& weights,
        const TensorView& embedding, const TensorView& gradient);

    bool any() const noexcept { return !m_runs.empty(); }
    std::span<const TokenRun> runs() const noexcept { return m_runs; }
    const TensorView& gradient() const noexcept { return m_gradient; }

    // Copies the rows into the embedding.
    Status place(Stream& stream) const;
    // rowIds and rowOrder of a batch on the host, whose ids and order are there.
    void fill(const BatchViews& host) const;

private:
    std::int32_t rowOf(std::int32_t token) const noexcept;

    std::vector<TokenRun> m_runs;
    std::vector<std::pair<std::int32_t, std::int32_t>> m_rows; // token, row; ascending
    std::int32_t m_count = 0;
    TensorView m_weights;
    TensorView m_embedding;
    TensorView m_gradient;
};

} // namespace mr
