// `millrace plan`: the memory, disk and time that a run needs, before it starts.

#include "app/cli/commands.h"
#include "app/cli/method_table.h"
#include "app/cli/plan_data.h"
#include "app/cli/spec_options.h"
#include "app/compose.h"
#include "core/base/bytes.h"
#include "core/plan/policies.h"

#include <millrace/library.h>
#include <millrace/planner.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace mr::app {
namespace {

struct PlanOptions {
    SpecOptions spec;
    bool allPolicies = false;
    bool allMethods = false;
    bool json = false;
};

void printDisk(const PlanReport& report)
{
    if (report.diskReadBytesPerStep == 0 && report.diskWriteBytesPerStep == 0)
        return;
    printText("  a step reads %s from the disk and writes %s to it",
        formatBytes(static_cast<std::uint64_t>(report.diskReadBytesPerStep)).c_str(),
        formatBytes(static_cast<std::uint64_t>(report.diskWriteBytesPerStep)).c_str());
    std::istringstream wear(report.wear); // a line a drive
    for (std::string line; std::getline(wear, line);)
        printText("  wear: %s", line.c_str());
}

void printSaved(const PlanReport& report)
{
    std::string text = "  a checkpoint takes " + formatBytes(report.checkpointBytes);
    if (report.checkpointsKept > 0)
        text += fmt::format("; at most {} are kept, {} with the one being written",
            report.checkpointsKept,
            formatBytes(
                static_cast<std::uint64_t>(report.checkpointsKept + 1) * report.checkpointBytes));
    if (report.diskWriteBytesOfRun > 0)
        text += "; the run writes " + formatBytes(report.diskWriteBytesOfRun) + " to disk";
    printText("%s", text.c_str());
}

// A sentence with the options of train.
std::string lighterWords(const LighterWay& way)
{
    const char* what =
        way.blocks
            ? "Train one block after the other (--train blocks): AdamW with the state of one "
              "block, and the others are only read; results differ, and it takes about twice "
              "the tokens"
        : way.compactState ? "Keep AdamW's state compact (--policy-option state=compact)"
        : way.weights == WeightFormat::Random16
            ? "Train with a light optimizer on weights of 16 bits, rounded at random (--optimizer "
              "factored --weights bf16-random); results differ from AdamW's"
            : "Train with a light optimizer on weights of 24 bits (--optimizer factored); results "
              "differ, and are level with AdamW's in published tests on 1B and 4B models";
    const std::string speed =
        way.tokensPerSecond > 0.0
            ? fmt::format(", {:.0f} tokens/s by forecast", way.tokensPerSecond)
            : std::string();
    return fmt::format("{}: policy {}, {} of host memory, no step writes to an SSD{}.", what,
        way.policy, formatBytes(way.hostBytes), speed);
}

// "streamed, weights in RAM"
std::string policyWords(const std::string& name)
{
    const PolicyInfo* policy = findPolicy(name);
    return policy == nullptr ? name : name + ", " + std::string(policy->plainName);
}

std::string exactness(const PlanReport& report)
{
    if (report.exact)
        return "exact";
    return "not exact" + (report.inexactBy.empty() ? "" : ": " + report.inexactBy);
}

void printReport(const PlanReport& report, const std::optional<DataReport>& data)
{
    if (report.tiers.empty()) // it was refused
        return printText("policy %s: %s", policyWords(report.policy).c_str(), report.limit.c_str());
    const std::string optimizer =
        report.optimizer.empty() ? std::string() : ", optimizer " + report.optimizer;
    printText("policy %s (%s), %s, recompute %s%s, %s: %s", policyWords(report.policy).c_str(),
        exactness(report).c_str(), report.precision.c_str(), report.recompute.c_str(),
        optimizer.c_str(), parameterWords(report).c_str(),
        report.fits ? "fits" : report.limit.c_str());
    for (const PlanTier& tier : report.tiers) {
        printText("  %-7s %12s of %s", tier.tier.c_str(), formatBytes(tier.totalBytes).c_str(),
            formatBytes(tier.budgetBytes).c_str());
        for (const PlanBytes& kind : tier.kinds)
            printText("    %-20s %12s  (%llu bytes)", kind.kind.c_str(),
                formatBytes(kind.bytes).c_str(), static_cast<unsigned long long>(kind.bytes));
    }
    printText("  the program will hold %s of the machine's memory in all",
        formatBytes(report.processBytes).c_str());
    printText("  a step moves %s to the device and %s back, for %lld tokens",
        formatBytes(static_cast<std::uint64_t>(report.h2dBytesPerStep)).c_str(),
        formatBytes(static_cast<std::uint64_t>(report.d2hBytesPerStep)).c_str(),
        static_cast<long long>(report.tokensPerStep));
    printDisk(report);
    if (data)
        printText("  data: %s", describeData(*data).c_str());
    if (data)
        printText("  data: %s", layoutNote(*data).c_str());
    if (report.predictedStepMs > 0.0)
        printText("  forecast: %.1f ms a step, of which %.1f ms compute", report.predictedStepMs,
            report.predictedComputeMs);
    if (!report.reason.empty())
        printText("  chosen: %s", report.reason.c_str());
    printSaved(report);
    for (const std::string& advice : report.advice)
        printText("  advice: %s", advice.c_str());
    for (const LighterWay& way : report.lighter)
        printText("  advice: %s", lighterWords(way).c_str());
}

nlohmann::json jsonOf(const PlanReport& report, const std::optional<DataReport>& data)
{
    auto json = nlohmann::json::parse(toJson(report));
    if (data)
        json["data"] = nlohmann::json::parse(toJson(*data));
    return json;
}

void show(const PlanReport& report, const std::optional<DataReport>& data, bool asJson)
{
    if (asJson)
        printJson(jsonOf(report, data));
    else
        printReport(report, data);
}

void showMethods(
    const std::vector<PlanReport>& reports, const std::optional<DataReport>& data, bool asJson)
{
    if (!asJson) {
        for (const std::string& line : methodTable(reports))
            printText("%s", line.c_str());
        return;
    }
    auto list = nlohmann::json::array();
    for (const PlanReport& report : reports)
        list.push_back(jsonOf(report, data));
    printJson(list);
}

Result<std::vector<PlanReport>> reportsOf(const PlanOptions& options, const RunSpec& spec)
{
    if (options.allPolicies)
        return planAllForMachine(spec);
    if (options.allMethods)
        return planMethodsForMachine(spec);
    MR_ASSIGN(auto one, planForMachine(spec));
    return std::vector<PlanReport>{std::move(one)};
}

int plan(const PlanOptions& options)
{
    auto asked = options.spec.spec();
    if (!asked.ok())
        return fail(asked.status(), options.json);
    RunSpec spec = std::move(asked).value();
    auto looked = lookAtData(spec);
    if (!looked.ok())
        return fail(looked.status(), options.json);
    const auto& [data, advice] = looked.value();
    auto planned = reportsOf(options, spec);
    if (!planned.ok())
        return fail(planned.status(), options.json);
    auto reports = std::move(planned).value();
    for (PlanReport& report : reports)
        report.advice.insert(report.advice.end(), advice.begin(), advice.end());
    if (options.allMethods)
        showMethods(reports, data, options.json);
    else
        for (const PlanReport& report : reports)
            show(report, data, options.json);
    const bool fits =
        std::ranges::any_of(reports, [](const PlanReport& report) { return report.fits; });
    return fits ? 0 : 3;
}

} // namespace

void addPlan(CLI::App& app, Action& action)
{
    auto options = std::make_shared<PlanOptions>();
    CLI::App* command =
        app.add_subcommand("plan", "Memory, time and disk writes that a run would need");
    options->spec.addTo(*command, false);
    auto* all = command->add_flag("--all-policies", options->allPolicies, "A report per policy");
    command
        ->add_flag("--all-methods", options->allMethods,
            "A line for full fine-tuning, for --train-layers and for an adapter")
        ->excludes(all);
    command->add_flag("--json", options->json, "JSON on stdout");
    command->callback([options, &action] { action = [options] { return plan(*options); }; });
}

} // namespace mr::app
