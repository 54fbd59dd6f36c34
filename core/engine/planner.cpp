// The public planner: RunSetup put into the words of PlanReport.

#include "core/base/bytes.h"
#include "core/engine/run_setup.h"
#include "core/plan/cost_model.h"

#include <algorithm>

namespace mr {
namespace {

PlanTier tierOf(const RunSetup& setup, Tier tier, std::string_view word, std::size_t budget)
{
    PlanTier out;
    out.tier = word;
    out.budgetBytes = budget;
    out.totalBytes = setup.memory.bytes(tier);
    for (const MemoryItem& item : setup.memory.items) {
        if (item.tier != tier)
            continue;
        if (out.kinds.empty() || out.kinds.back().kind != name(item.use))
            out.kinds.push_back({std::string(name(item.use)), 0});
        out.kinds.back().bytes += item.bytes;
    }
    return out;
}

// Plans the same run with one change; the report's words if that would fit.
void advise(const RunSetup& setup, PlanReport& report)
{
    const auto attempt = [&](const std::string& words, auto change) {
        RunSpec other = setup.spec;
        change(other);
        auto changed = setUpRun(other, 0);
        if (changed.ok() && changed.value().limit.empty())
            report.advice.push_back(words);
    };
    if (setup.spec.policy == "resident")
        attempt("Keep the optimizer state in host memory: policy zero-offload.",
            [](RunSpec& s) { s.policy = "zero-offload"; });
    if (setup.spec.recompute == RecomputeChoice::None)
        attempt("Recompute activations in the backward pass: recompute block.",
            [](RunSpec& s) { s.recompute = RecomputeChoice::Block; });
    if (setup.spec.seqLen >= 256)
        attempt("Halve the sequence length to " + std::to_string(setup.spec.seqLen / 2) + ".",
            [](RunSpec& s) { s.seqLen /= 2; });
    if (setup.spec.microBatch >= 2)
        attempt(
            "Halve the micro-batch and double the accumulation: the same result in less memory.",
            [](RunSpec& s) {
                s.microBatch /= 2;
                s.accumulate *= 2;
            });
}

} // namespace

PlanReport reportOf(const RunSetup& setup)
{
    PlanReport report;
    report.policy = setup.spec.policy;
    report.fits = setup.limit.empty();
    report.limit = setup.limit;
    report.device = std::string(name(setup.spec.device));
    report.simulatedLink = setup.spec.linkBytesPerSecond > 0.0;
    report.precision = std::string(name(setup.spec.precision));
    report.recompute = std::string(name(setup.spec.recompute));
    report.parameters = setup.table.parameters;
    report.steps = setup.spec.steps;
    report.tokensPerStep = setup.micro.tokens() * setup.micro.microBatches;
    report.tiers = {tierOf(setup, Tier::Device, "device", setup.budget.deviceBytes),
        tierOf(setup, Tier::PinnedHost, "host", setup.budget.hostBytes)};
    report.checkpointBytes = checkpointBytes(setup.table);
    StepSpec first = setup.step;
    first.step = 1;
    auto built = buildPlan(first, Carry{}, setup.shape, setup.budget, Feedback{}, setup.policy);
    if (built.ok()) {
        const LinkTraffic traffic =
            linkTraffic(built.value().plan, setup.shape, setup.step.precision);
        report.h2dBytesPerStep = traffic.hostToDeviceBytes;
        report.d2hBytesPerStep = traffic.deviceToHostBytes;
    }
    return report;
}

Result<RunSpec> resolveSpec(const RunSpec& spec, std::int64_t trainSequences)
{
    auto setup = setUpRun(spec, trainSequences);
    if (!setup.ok())
        return setup.status();
    return std::move(setup).value().spec;
}

Result<PlanReport> planRun(const RunSpec& spec)
{
    auto setup = setUpRun(spec, 0);
    if (!setup.ok())
        return setup.status();
    PlanReport report = reportOf(setup.value());
    if (!report.fits)
        advise(setup.value(), report);
    return report;
}

Result<std::vector<PlanReport>> planAllPolicies(const RunSpec& spec)
{
    std::vector<PlanReport> reports;
    for (const PolicyInfo& info : policyTable()) {
        if (!info.built)
            continue;
        RunSpec one = spec;
        one.policy = info.name;
        auto report = planRun(one);
        if (!report.ok())
            return report.status();
        reports.push_back(std::move(report).value());
    }
    std::stable_partition(
        reports.begin(), reports.end(), [](const PlanReport& r) { return r.fits; });
    return reports;
}

} // namespace mr
