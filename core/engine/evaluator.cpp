#include "core/engine/evaluator.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace mr {

Result<EvalResult> evaluate(
    StepExecutor& executor, const StepPlan& plan, const TokenSet& set, const BatchShape& shape)
{
    EvalResult result;
    result.sequences = set.count();
    double sum = 0.0;
    std::vector<std::int64_t> sequences(static_cast<std::size_t>(set.count()));
    std::iota(sequences.begin(), sequences.end(), std::int64_t{0});
    std::vector<MicroBatchData> micros(static_cast<std::size_t>(shape.accumulate));
    std::size_t next = 0;
    while (next < sequences.size()) {
        for (MicroBatchData& micro : micros) {
            const std::size_t count =
                std::min(static_cast<std::size_t>(shape.microBatch), sequences.size() - next);
            fillMicroBatch(set, std::span(sequences).subspan(next, count), shape, micro);
            next += count;
            result.tokens += static_cast<std::int64_t>(micro.targets.size()) -
                             std::count(micro.targets.begin(), micro.targets.end(), -1);
        }
        StepInputs inputs;
        inputs.micros = micros;
        auto step = executor.run(plan, inputs);
        if (!step.ok())
            return step.status();
        sum += step.value().lossSum;
    }
    if (result.tokens == 0)
        return Status::error(
            ErrorKind::InvalidArgument, "evaluation: the data has no token to predict");
    result.loss = sum / static_cast<double>(result.tokens);
    return result;
}

} // namespace mr
