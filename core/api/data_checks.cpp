#include <millrace/data_checks.h>

#include <algorithm>

namespace mr {
namespace {

constexpr std::array<std::string_view, kRowChecks> kNames{"unreadable", "left-out", "untrained",
    "cut", "empty-turn", "role-order", "encoding", "duplicate", "near-duplicate", "in-evaluation"};

} // namespace

std::string_view name(RowCheck check) noexcept
{
    return kNames[static_cast<std::size_t>(check)];
}

LengthEffect effectOfLength(const std::vector<LengthCount>& lengths, std::int64_t seqLen) noexcept
{
    LengthEffect out;
    for (const LengthCount& one : lengths) {
        out.tokens += one.tokens * one.rows;
        out.kept += std::min(one.tokens, seqLen + 1) * one.rows;
        out.cutRows += one.tokens > seqLen + 1 ? one.rows : 0;
    }
    return out;
}

} // namespace mr
