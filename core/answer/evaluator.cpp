#include "core/answer/evaluator.h"

#include "core/answer/sampling.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace mr {
namespace {

// Tokens of the longest, as far as a row takes them.
std::int64_t longestOf(
    const TokenSet& set, std::span<const std::int64_t> sequences, std::int64_t seqLen)
{
    std::int64_t longest = 1;
    for (const std::int64_t sequence : sequences)
        longest = std::max(longest, static_cast<std::int64_t>(set.sequences.length(sequence)));
    return std::min(longest, seqLen);
}

} // namespace

Result<EvalResult> evaluate(StepExecutor& executor, const StepPlan& plan, const TokenSet& set,
    const BatchShape& shape, const RunWatch& watch, const TurnFor& turnFor)
{
    EvalResult result;
    result.sequences = set.count();
    double sum = 0.0;
    std::vector<std::int64_t> sequences(static_cast<std::size_t>(set.count()));
    std::iota(sequences.begin(), sequences.end(), std::int64_t{0});
    std::vector<MicroBatchData> micros(static_cast<std::size_t>(shape.accumulate));
    TokenSequence scratch;
    std::size_t next = 0;
    while (next < sequences.size()) {
        const std::size_t first = next;
        for (MicroBatchData& micro : micros) {
            const std::size_t count =
                std::min(static_cast<std::size_t>(shape.microBatch), sequences.size() - next);
            MR_TRY(readMicroBatch(
                set, std::span(sequences).subspan(next, count), shape, scratch, micro));
            next += count;
            result.tokens += static_cast<std::int64_t>(micro.targets.size()) -
                             std::count(micro.targets.begin(), micro.targets.end(), -1);
        }
        if (turnFor) {
            const auto read = std::span(sequences).subspan(first, next - first);
            const std::int64_t longest = longestOf(set, read, shape.seqLen);
            MR_TRY(turnFor(longest, longest).status());
        }
        StepInputs inputs;
        inputs.micros = micros;
        MR_ASSIGN(auto step, executor.run(plan, inputs));
        sum += step.lossSum;
        if (watch)
            watch(plan, step);
    }
    if (result.tokens == 0)
        return Status::error(
            ErrorKind::InvalidArgument, "evaluation: the data has no token to predict");
    result.loss = sum / static_cast<double>(result.tokens);
    return result;
}

Result<AnswerScore> scoreAnswers(StepExecutor& executor, const TokenSet& set, std::int64_t vocab,
    std::int64_t room, std::int64_t limit, const TurnFor& turnFor)
{
    AnswerScore score;
    std::vector<float> logits(static_cast<std::size_t>(vocab));
    TokenSequence sequence;
    for (std::int64_t i = 0; i < set.count() && score.asked < limit; ++i) {
        MR_TRY(set.sequences.read(i, sequence));
        const std::size_t end = sequence.tokens.size();
        std::size_t response = 1;
        while (response < end && sequence.trained[response] == 0)
            ++response;
        const bool isPair = response > 1 && response < end;
        if (!isPair || static_cast<std::int64_t>(end) > room)
            continue;
        ++score.asked;
        std::size_t done = 0;
        std::size_t at = response;
        while (at < end) {
            if (turnFor) {
                MR_ASSIGN(auto changed,
                    turnFor(static_cast<std::int64_t>(at), static_cast<std::int64_t>(end)));
                done = changed ? 0 : done;
            }
            MR_TRY(executor.decoder().advance(std::span(sequence.tokens).subspan(done, at - done),
                static_cast<std::int64_t>(done), logits));
            if (sampleToken(logits, 0.0, 1.0, 0, 0) != sequence.tokens[at])
                break;
            done = at++;
        }
        score.right += at == end ? 1 : 0;
    }
    return score;
}

} // namespace mr
