#include "core/run/eval_split.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace mr {
namespace {

constexpr std::int64_t kMostHeldOut = 200;
constexpr std::int64_t kFewestToSplit = 20;

} // namespace

std::int64_t holdOutCount(std::int64_t sequences, double share) noexcept
{
    if (sequences < kFewestToSplit)
        return 0;
    return std::min(
        kMostHeldOut, static_cast<std::int64_t>(share * static_cast<double>(sequences)));
}

Result<std::pair<TokenSet, TokenSet>> holdOut(const TokenSet& set, std::int64_t count)
{
    std::vector<std::uint32_t> held(static_cast<std::size_t>(count));
    // The middle of each of `count` equal stretches.
    for (std::int64_t k = 0; k < count; ++k)
        held[static_cast<std::size_t>(k)] =
            static_cast<std::uint32_t>((2 * k + 1) * set.count() / (2 * count));
    TokenSet train = set;
    TokenSet eval;
    std::tie(train.sequences, eval.sequences) = set.sequences.split(held);
    TokenSequence sequence;
    for (std::int64_t i = 0; i < eval.count(); ++i) {
        MR_TRY(eval.sequences.read(i, sequence));
        // The first token of a sequence is no target: nothing comes before it.
        eval.trainedTokens += static_cast<std::uint64_t>(
            std::count(sequence.trained.begin() + 1, sequence.trained.end(), std::uint8_t{1}));
    }
    train.trainedTokens -= eval.trainedTokens;
    return std::pair{std::move(train), std::move(eval)};
}

} // namespace mr
