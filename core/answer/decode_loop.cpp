#include "core/answer/decode_loop.h"

#include "core/answer/sampling.h"
#include "core/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mr {
namespace {

Status checkRoom(const Continuation& what)
{
    if (what.tokens.empty())
        return Status::error(ErrorKind::InvalidArgument, "generate: the prompt has no token");
    if (static_cast<std::int64_t>(what.tokens.size()) >= what.room)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("generate: the prompt has {} tokens, the model has room for {}",
                what.tokens.size(), std::max<std::int64_t>(what.room - 1, 0)));
    return {};
}

// The largest of numbers that are none says nothing about the text.
Status checkLogits(std::span<const float> logits, std::size_t tokens)
{
    if (std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }))
        return {};
    return Status::error(ErrorKind::Internal,
        fmt::format(
            "generate: behind {} tokens the model's logits are not finite numbers: its weights are "
            "damaged or too large; take an earlier checkpoint, or try --precision fp32",
            tokens));
}

} // namespace

Result<Generated> continueTokens(Continuation what, const GenerateOptions& options)
{
    MR_TRY(checkRoom(what));
    std::vector<TokenId>& tokens = what.tokens;
    Generated out;
    out.promptTokens = static_cast<std::int64_t>(tokens.size());
    const auto most =
        static_cast<std::size_t>(std::min(what.room, out.promptTokens + options.maxTokens));
    what.ends.push_back(what.tokenizer.eos());
    MR_ASSIGN(auto shown, what.tokenizer.decode(tokens));
    std::size_t before = shown.size();
    std::vector<float> logits(static_cast<std::size_t>(what.vocab));
    // Models round their vocabulary up; ids beyond the tokenizer's are no text.
    const auto choices = std::span<const float>(logits).first(static_cast<std::size_t>(
        std::min(what.vocab, std::max<std::int64_t>(what.tokenizer.vocabulary(), 1))));
    std::int64_t done = 0;
    while (tokens.size() < most) {
        MR_TRY(what.next(tokens, done, logits));
        MR_TRY(checkLogits(choices, tokens.size()));
        done = static_cast<std::int64_t>(tokens.size());
        const TokenId token =
            sampleToken(choices, options.temperature, options.topP, options.seed, done);
        out.ended = std::find(what.ends.begin(), what.ends.end(), token) != what.ends.end();
        if (out.ended)
            break;
        tokens.push_back(token);
        out.tokens.push_back(token);
        auto text = what.tokenizer.decode(tokens);
        MR_TRY(text.status());
        const std::size_t whole = text.value().size() - unfinishedBytes(text.value());
        if (whole <= before)
            continue;
        const std::string piece = text.value().substr(before, whole - before);
        before = whole;
        out.text += piece;
        if (options.onText && !options.onText(piece))
            break;
    }
    return out;
}

} // namespace mr
