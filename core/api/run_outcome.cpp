#include <millrace/run_outcome.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace mr {
namespace {

constexpr double kClearShare = 0.05;
constexpr double kClearNats = 0.02;
constexpr double kBlownUp = 2.0; // times the loss before training

// Both losses are finite.
bool isClearlyAbove(double loss, double other)
{
    return loss > other * (1.0 + kClearShare) && loss > other + kClearNats;
}

WorseCause causeOf(const Evaluations& e)
{
    const bool wasBetter = std::isfinite(e.best) && isClearlyAbove(e.before, e.best);
    const bool blewUp = !std::isfinite(e.last) || e.last > kBlownUp * e.before;
    return wasBetter && !blewUp ? WorseCause::TooManySteps : WorseCause::LearningRate;
}

// "1.83", "2,403".
std::string lossText(double loss)
{
    if (!std::isfinite(loss))
        return "not a number";
    std::array<char, 64> text{};
    if (loss < 1000.0) {
        (void)std::snprintf(text.data(), text.size(), "%.3g", loss);
        return text.data();
    }
    (void)std::snprintf(text.data(), text.size(), "%.0f", std::min(loss, 1e18));
    std::string digits = text.data();
    for (std::size_t at = digits.size(); at > 3;)
        digits.insert(at -= 3, ",");
    return digits;
}

} // namespace

Evaluations evaluationsOf(const RunRow& run)
{
    return {run.firstEval, run.lastEval, run.lastEvalStep, run.bestEval, run.bestEvalStep};
}

RunOutcome judge(const Evaluations& evaluations)
{
    RunOutcome outcome;
    outcome.evaluations = evaluations;
    const Evaluations& e = evaluations;
    if (e.lastStep < 1 || !std::isfinite(e.before))
        return outcome;
    if (!std::isfinite(e.last) || isClearlyAbove(e.last, e.before)) {
        outcome.verdict = RunVerdict::Worse;
        outcome.cause = causeOf(e);
        return outcome;
    }
    outcome.verdict = isClearlyAbove(e.before, e.last) ? RunVerdict::Better : RunVerdict::Same;
    return outcome;
}

std::string describeOutcome(const RunOutcome& outcome)
{
    if (outcome.verdict != RunVerdict::Worse)
        return {};
    const Evaluations& e = outcome.evaluations;
    std::string text = "Worse than before training: " + lossText(e.last) + " against " +
                       lossText(e.before) + " at step 0. ";
    if (outcome.cause == WorseCause::LearningRate)
        return text + "The learning rate is probably too high.";
    return fmt::format("{}It was best at step {} ({}): train for fewer steps.", text, e.bestStep,
        lossText(e.best));
}

} // namespace mr
