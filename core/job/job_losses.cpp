#include "core/job/job_losses.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

constexpr IntRange kLossSteps{1, (std::int64_t{1} << 40) - 1};
constexpr IntRange kTokens{0, std::int64_t{1} << 53};
constexpr double kMostMs = 9.0e12;

// train.py writes what is no finite number as null.
double numberOrNan(JsonFields& fields, const char* key)
{
    return fields.number(key, std::numeric_limits<double>::quiet_NaN());
}

StepRow stepOf(JsonFields& fields, std::int64_t step)
{
    StepRow row;
    row.step = step;
    row.loss = numberOrNan(fields, "loss");
    row.learningRate = numberOrNan(fields, "lr");
    row.gradNorm = numberOrNan(fields, "grad_norm");
    row.tokens = fields.requiredInteger("tokens", kTokens);
    row.lossTokens = fields.requiredInteger("loss_tokens", kTokens);
    const double ms = fields.requiredNumber("wall_ms");
    if (!(ms >= 0.0 && ms < kMostMs))
        fields.fail("wall_ms", "is no time");
    else
        row.wallUs = std::llround(1000.0 * ms);
    row.computeUs = row.wallUs; // a job does not say where it waited
    return row;
}

Status addLine(std::string_view line, const std::string& source, JobLosses& losses)
{
    MR_ASSIGN(const nlohmann::json json, parseJson(line, source));
    JsonFields fields(json, source);
    const std::int64_t step = fields.requiredInteger("step", kLossSteps);
    const std::int64_t before = losses.steps.empty() ? 0 : losses.steps.back().step;
    const std::int64_t timeMs = losses.steps.empty() ? 0 : losses.steps.back().timeMs;
    if (fields.find("eval_loss") != nullptr) {
        losses.evaluations.push_back({step, timeMs, fields.requiredNumber("eval_loss")});
        return fields.status();
    }
    StepRow row = stepOf(fields, step);
    if (step <= before)
        fields.fail("step", "does not come after the one of the line before");
    row.timeMs = timeMs + row.wallUs / 1000;
    losses.steps.push_back(row);
    return fields.status();
}

} // namespace

Result<JobLosses> parseJobLosses(std::string_view text, const std::string& source)
{
    JobLosses losses;
    for (std::int64_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const Status added =
            end == 0 ? Status()
                     : addLine(text.substr(0, end), source + ":" + std::to_string(number), losses);
        if (!added.ok())
            return Status::error(ErrorKind::DataCorrupt, added.message());
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return losses;
}

} // namespace mr
