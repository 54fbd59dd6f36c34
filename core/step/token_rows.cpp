#include "core/step/token_rows.h"

#include <algorithm>

namespace mr {

TokenRows::TokenRows(const ParamTable& trained, std::int64_t padToken, const TensorView& weights,
    const TensorView& embedding, const TensorView& gradient)
    : m_runs(tokenRuns(trained))
    , m_weights(weights)
    , m_embedding(embedding)
    , m_gradient(gradient)
{
    for (const TokenRun& run : m_runs)
        for (std::int64_t i = 0; i < run.count; ++i, ++m_count)
            if (run.firstToken + i != padToken)
                m_rows.emplace_back(static_cast<std::int32_t>(run.firstToken + i),
                    static_cast<std::int32_t>(run.firstRow + i));
    std::ranges::sort(m_rows);
}

Status TokenRows::place(Stream& stream) const
{
    for (const TokenRun& run : m_runs) {
        const TensorView from = m_weights.rows(run.firstRow, run.count);
        MR_TRY(stream.copy(
            m_embedding.rows(run.firstToken, run.count).data, {from.data, from.bytes()}));
    }
    return {};
}

std::int32_t TokenRows::rowOf(std::int32_t token) const noexcept
{
    const auto at =
        std::ranges::lower_bound(m_rows, token, {}, [](const auto& each) { return each.first; });
    return at != m_rows.end() && at->first == token ? at->second : m_count;
}

// Ids that are equal follow each other in `order`, so the places of a row's token are one stretch
// of it.
void TokenRows::fill(const BatchViews& host) const
{
    const auto count = static_cast<std::size_t>(host.ids.count());
    const std::span ids(host.ids.as<const std::int32_t>(), count);
    const std::span order(host.order.as<const std::int32_t>(), count);
    const std::span rows(host.rowIds.as<std::int32_t>(), count);
    std::ranges::transform(ids, rows.begin(), [this](std::int32_t id) { return rowOf(id); });
    auto* out = host.rowOrder.as<std::int32_t>();
    const auto idAt = [&](std::int32_t at) { return ids[static_cast<std::size_t>(at)]; };
    for (const TokenRun& run : m_runs)
        for (std::int64_t i = 0; i < run.count; ++i) {
            const auto token = static_cast<std::int32_t>(run.firstToken + i);
            auto at = std::ranges::lower_bound(order, token, {}, idAt);
            for (; rowOf(token) < m_count && at != order.end() && idAt(*at) == token; ++at)
                *out++ = *at;
        }
    std::ranges::copy_if(
        order, out, [&](std::int32_t at) { return rows[static_cast<std::size_t>(at)] == m_count; });
}

} // namespace mr
