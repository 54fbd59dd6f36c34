#include "core/engine/hold_out.h"

#include <algorithm>

namespace mr {
namespace {

constexpr std::int64_t kMostHeldOut = 200;
constexpr std::int64_t kFewestToSplit = 20;

void append(const TokenSet& from, std::int64_t index, TokenSet& to)
{
    const auto begin = static_cast<std::ptrdiff_t>(from.starts[static_cast<std::size_t>(index)]);
    const auto end = static_cast<std::ptrdiff_t>(from.starts[static_cast<std::size_t>(index) + 1]);
    to.tokens.insert(to.tokens.end(), from.tokens.begin() + begin, from.tokens.begin() + end);
    to.trained.insert(to.trained.end(), from.trained.begin() + begin, from.trained.begin() + end);
    to.starts.push_back(to.tokens.size());
    // The first token of a sequence is no target: nothing comes before it.
    to.trainedTokens += static_cast<std::uint64_t>(
        std::count(from.trained.begin() + begin + 1, from.trained.begin() + end, std::uint8_t{1}));
}

} // namespace

std::int64_t holdOutCount(std::int64_t sequences, double share) noexcept
{
    if (sequences < kFewestToSplit)
        return 0;
    return std::min(
        kMostHeldOut, static_cast<std::int64_t>(share * static_cast<double>(sequences)));
}

std::pair<TokenSet, TokenSet> holdOut(const TokenSet& set, std::int64_t count)
{
    TokenSet train;
    TokenSet eval;
    train.rows = set.rows;
    train.cutRows = set.cutRows;
    train.emptyRows = set.emptyRows;
    train.starts.push_back(0);
    eval.starts.push_back(0);
    std::int64_t taken = 0;
    for (std::int64_t i = 0; i < set.count(); ++i) {
        // The middle of each of `count` equal stretches.
        const bool held = taken < count && i == (2 * taken + 1) * set.count() / (2 * count);
        append(set, i, held ? eval : train);
        taken += held ? 1 : 0;
    }
    return {std::move(train), std::move(eval)};
}

} // namespace mr
