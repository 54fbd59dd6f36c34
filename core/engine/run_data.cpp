#include "core/engine/run_data.h"

#include <xxhash.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <span>

namespace mr {

std::string modelFolder(const RunSpec& spec)
{
    return spec.modelDir.empty() ? spec.scratchTokenizer : spec.modelDir;
}

RunSpec withStyle(RunSpec spec, RowStyle style)
{
    for (auto* sources : {&spec.data, &spec.evalData})
        for (DataSource& source : *sources)
            settleStyle(source, style);
    return spec;
}

Result<TokenSet> tokens(
    const std::vector<DataSource>& sources, const Tokenizer& tokenizer, const RunSpec& spec)
{
    TokenSetOptions options;
    options.seqLen = spec.seqLen;
    options.split = spec.split;
    options.modelFolder = modelFolder(spec);
    return buildTokenSet(sources, tokenizer, options);
}

Result<std::string> dataHash(const TokenSet& set)
{
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
        XXH3_createState(), &XXH3_freeState);
    const auto add = [&state](const auto& values) {
        const auto bytes = std::as_bytes(std::span(values));
        (void)XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
    };
    // All tokens, then all flags, then where sequences begin, each seeded by the hash before.
    XXH64_hash_t hash = 0;
    TokenSequence sequence;
    for (const bool flags : {false, true}) {
        (void)XXH3_64bits_reset_withSeed(state.get(), hash);
        for (std::int64_t i = 0; i < set.count(); ++i) {
            MR_TRY(set.sequences.read(i, sequence));
            flags ? add(sequence.trained) : add(sequence.tokens);
        }
        hash = XXH3_64bits_digest(state.get());
    }
    (void)XXH3_64bits_reset_withSeed(state.get(), hash);
    std::array<std::uint64_t, 1> start{};
    add(start);
    for (std::int64_t i = 0; i < set.count(); ++i) {
        start[0] += set.sequences.length(i);
        add(start);
    }
    hash = XXH3_64bits_digest(state.get());
    std::array<char, 17> text{};
    (void)std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
    return std::string(text.data());
}

} // namespace mr
