// Plans for training the whole model, some of its layers or an adapter, beside each other.

#include "core/choose/trained_part.h"

#include <millrace/planner.h>
#include <millrace/spec_fields.h>

#include <optional>
#include <utility>

namespace mr {
namespace {

RunSpec trainingAll(RunSpec spec)
{
    spec.method = "full";
    spec.trainLayers.clear();
    takeAdapterOptions(RunSpec(), spec);
    return spec;
}

// Layers of a spec that trains the model itself are no blocks for an adapter.
RunSpec trainingAdapter(RunSpec spec)
{
    if (!isAdapterRun(spec))
        spec.trainLayers.clear();
    spec.method = "lora";
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

class MethodPlans
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
    std::vector<RunSpec> specs = {trainingAll(spec)};
    if (methodWord(spec) == "layers") {
        specs.push_back(spec);
        takeAdapterOptions(RunSpec(), specs.back());
    }
    specs.push_back(trainingAdapter(spec));
    const bool isOther = spec.method != "full" && !isAdapterRun(spec);
    if (isOther) // refused by its name
        specs.push_back(spec);
    return specs;
}

Result<std::vector<PlanReport>> planAllMethods(const RunSpec& spec)
{
    const std::string bf16(name(PrecisionChoice::BF16));
    MethodPlans plans;
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

} // namespace mr
