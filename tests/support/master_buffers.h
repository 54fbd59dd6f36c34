// A whole master in memory, for tests: filled by hand or from another one, and a reader itself.

#pragma once

#include "core/model/master.h"
#include "core/model/param_table.h"
#include "core/model/weights.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace mr::test {

class MasterBuffers : public MasterReader
{
public:
    explicit MasterBuffers(const ParamTable& table, std::uint16_t value = 0)
    {
        for (const ParamGroup& group : table.groups) {
            high.emplace_back(static_cast<std::size_t>(group.elements), value);
            low.emplace_back(
                static_cast<std::size_t>(group.elements), static_cast<std::int16_t>(value));
        }
    }

    // Every group by one read.
    Status fill(MasterReader& from)
    {
        for (std::size_t g = 0; g < high.size(); ++g)
            MR_TRY(from.read(GroupId{static_cast<std::int32_t>(g)}, 0, {high[g], low[g]}));
        return {};
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        const auto g = static_cast<std::size_t>(group.value);
        std::copy_n(high[g].begin() + first, out.high.size(), out.high.begin());
        std::copy_n(low[g].begin() + first, out.low.size(), out.low.begin());
        return {};
    }

    std::vector<std::vector<std::uint16_t>> high; // by group
    std::vector<std::vector<std::int16_t>> low;
};

// Hash of the master's weights; the error's message where the master cannot be read.
inline std::string hashOf(const ParamTable& table, MasterReader& master)
{
    auto hash = weightsHash(table, master);
    return hash.ok() ? hash.value() : hash.status().message();
}

} // namespace mr::test
