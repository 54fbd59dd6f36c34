// Plans beside each other: for training the whole model at once or one block after the other, some
// of its layers, or an adapter beside the model as it is or in 4 bits; and under every policy. One
// that is refused says why and does not keep the others from being seen.

#include "core/choose/trained_part.h"
#include "core/plan/policies.h"

#include <millrace/planner.h>
#include <millrace/spec_fields.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace mr {
namespace {

RunSpec trainingAll(RunSpec spec)
{
    spec.method = "full";
    spec.trainLayers.clear();
    spec.train = TrainOrder::Together;
    spec.blockSteps = 0;
    takeAdapterOptions(RunSpec(), spec);
    return spec;
}

// The blocks and the length of a turn are those of a spec that trains so.
RunSpec trainingBlocks(const RunSpec& spec)
{
    RunSpec blocks = trainingAll(spec);
    blocks.train = TrainOrder::Blocks;
    if (trainsInTurns(spec)) {
        blocks.trainLayers = spec.trainLayers;
        blocks.blockSteps = spec.blockSteps;
    }
    return blocks;
}

// Layers of a spec that trains the model itself are no blocks for an adapter.
RunSpec trainingAdapter(RunSpec spec, std::string_view method)
{
    if (!isAdapterRun(spec))
        spec.trainLayers.clear();
    spec.train = TrainOrder::Together;
    spec.blockSteps = 0;
    spec.method = method;
    return spec;
}

PlanReport refusal(const RunSpec& spec, const Status& why)
{
    PlanReport report;
    report.method = methodWord(spec);
    report.policy = spec.policy;
    report.precision = std::string(name(spec.precision));
    report.device = std::string(name(spec.device));
    report.limit = why.message();
    return report;
}

class PlansTogether
{
public:
    // Returns the precision of the report.
    std::string add(const RunSpec& spec)
    {
        Result<PlanReport> report = planRun(spec);
        if (report.ok()) {
            m_isAnyPlanned = true;
            m_reports.push_back(std::move(report).value());
        } else {
            if (!m_problem)
                m_problem = report.status();
            m_reports.push_back(refusal(spec, report.status()));
        }
        return m_reports.back().precision;
    }

    Result<std::vector<PlanReport>> take()
    {
        if (!m_isAnyPlanned && m_problem)
            return *m_problem;
        return std::move(m_reports);
    }

private:
    std::vector<PlanReport> m_reports;
    std::optional<Status> m_problem; // the first
    bool m_isAnyPlanned = false;
};

} // namespace

std::vector<RunSpec> specsOfMethods(const RunSpec& spec)
{
    std::vector<RunSpec> specs = {trainingAll(spec), trainingBlocks(spec)};
    if (methodWord(spec) == "layers") {
        specs.push_back(spec);
        takeAdapterOptions(RunSpec(), specs.back());
    }
    specs.push_back(trainingAdapter(spec, "lora"));
    specs.push_back(trainingAdapter(spec, "qlora"));
    const bool isOther = spec.method != "full" && !isAdapterRun(spec);
    if (isOther) // refused by its name
        specs.push_back(spec);
    return specs;
}

Result<std::vector<PlanReport>> planAllMethods(const RunSpec& spec)
{
    const std::string bf16(name(PrecisionChoice::BF16));
    PlansTogether plans;
    for (RunSpec& one : specsOfMethods(spec)) {
        const std::string precision = plans.add(one);
        const bool isOpen = precision == name(PrecisionChoice::Auto); // it was refused
        if (precision == bf16 || isOpen)
            continue;
        one.precision = PrecisionChoice::BF16;
        (void)plans.add(one);
    }
    return plans.take();
}

Result<std::vector<PlanReport>> planAllPolicies(const RunSpec& spec)
{
    PlansTogether plans;
    for (const PolicyInfo& info : policyTable()) {
        RunSpec one = spec;
        one.policy = info.name;
        (void)plans.add(one);
    }
    MR_ASSIGN(auto reports, plans.take());
    const auto rank = [](const PlanReport& r) {
        const bool timed = r.predictedStepMs > 0.0;
        return std::tuple(!r.fits, !timed, r.predictedStepMs);
    };
    std::stable_sort(reports.begin(), reports.end(),
        [&](const PlanReport& a, const PlanReport& b) { return rank(a) < rank(b); });
    return reports;
}

} // namespace mr
