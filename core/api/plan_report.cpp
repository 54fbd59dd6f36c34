// JSON of PlanReport, both ways.

#include "core/api/json_fields.h"
#include "core/api/json_text.h"

#include <millrace/planner.h>

#include <limits>
#include <utility>

namespace mr {

using nlohmann::json;

namespace {

constexpr IntRange kCount{0, std::numeric_limits<std::int64_t>::max()};

json tierToJson(const PlanTier& tier)
{
    json kinds = json::array();
    for (const PlanBytes& k : tier.kinds)
        kinds.push_back({{"kind", k.kind}, {"bytes", k.bytes}});
    return {{"tier", tier.tier}, {"budget_bytes", tier.budgetBytes},
        {"total_bytes", tier.totalBytes}, {"kinds", std::move(kinds)}};
}

// {"name":"block 0","device":{"weights":4},"host":{"low plane":4}}: half the size of a list, and a
// plan has a hundred of them.
json groupToJson(const PlanGroup& group)
{
    json value = {{"name", group.name}};
    for (const PlanGroupBytes& b : group.bytes)
        value[b.tier][b.kind] = b.bytes;
    return value;
}

// The list of objects at `key`, each read by `read`.
template <typename T, typename Read>
void readList(JsonFields& fields, std::string_view key, std::vector<T>& out, Read read)
{
    const json* list = fields.find(key);
    if (list == nullptr)
        return;
    if (!list->is_array())
        return fields.fail(key, "must be a list");
    for (const json& item : *list) {
        JsonFields entry(item, "plan, " + std::string(key));
        out.push_back(read(entry));
        fields.take(entry.status());
    }
}

PlanBytes readKind(JsonFields& f)
{
    return {f.text("kind", ""), f.unsignedInteger("bytes", 0)};
}

PlanTier readTier(JsonFields& f)
{
    PlanTier tier;
    tier.tier = f.text("tier", "");
    tier.budgetBytes = f.unsignedInteger("budget_bytes", 0);
    tier.totalBytes = f.unsignedInteger("total_bytes", 0);
    readList(f, "kinds", tier.kinds, readKind);
    return tier;
}

PlanGroup readGroup(JsonFields& f)
{
    PlanGroup group;
    group.name = f.text("name", "");
    for (const char* tier : {"device", "host", "disk"}) {
        const json* kinds = f.find(tier);
        if (kinds == nullptr)
            continue;
        JsonFields bytes(*kinds, "plan, groups, " + std::string(tier));
        if (kinds->is_object()) {
            for (const auto& entry : kinds->items())
                group.bytes.push_back({tier, entry.key(), bytes.unsignedInteger(entry.key(), 0)});
        }
        f.take(bytes.status());
    }
    return group;
}

json lighterToJson(const LighterWay& way)
{
    return {{"compact_state", way.compactState}, {"blocks", way.blocks},
        {"optimizer", name(way.optimizer)}, {"weights", name(way.weights)}, {"policy", way.policy},
        {"host_bytes", way.hostBytes}, {"tokens_per_second", way.tokensPerSecond}};
}

LighterWay readLighter(JsonFields& f)
{
    LighterWay way;
    way.compactState = f.boolean("compact_state", false);
    way.blocks = f.boolean("blocks", false);
    auto optimizer = parseOptimizer(f.text("optimizer", "adamw"));
    auto weights = parseWeightFormat(f.text("weights", "auto"));
    f.take(optimizer.status());
    f.take(weights.status());
    if (optimizer.ok() && weights.ok()) {
        way.optimizer = optimizer.value();
        way.weights = weights.value();
    }
    way.policy = f.text("policy", "");
    way.hostBytes = f.unsignedInteger("host_bytes", 0);
    way.tokensPerSecond = f.number("tokens_per_second", 0.0);
    return way;
}

void readAdvice(JsonFields& f, std::vector<std::string>& out)
{
    const json* list = f.find("advice");
    if (list == nullptr)
        return;
    if (!list->is_array())
        return f.fail("advice", "must be a list");
    for (const json& item : *list) {
        if (!item.is_string())
            return f.fail("advice", "must be a list of strings");
        out.push_back(item.get<std::string>());
    }
}

void readStalls(JsonFields& f, std::array<double, kStallCauses>& out)
{
    const json* stalls = f.find("predicted_stall_ms");
    if (stalls == nullptr)
        return;
    JsonFields causes(*stalls, "plan, predicted_stall_ms");
    for (std::size_t i = 0; i < kStallCauses; ++i)
        out[i] = causes.number(kStallCauseNames[i], 0.0);
    f.take(causes.status());
}

PlanReport readReport(JsonFields& f)
{
    PlanReport r;
    r.method = f.text("method", "full");
    r.policy = f.text("policy", "");
    r.exact = f.boolean("exact", true);
    r.inexactBy = f.text("inexact_by", "");
    r.maxStaleSteps =
        static_cast<int>(f.integer("max_stale_steps", {0, std::numeric_limits<int>::max()}, 0));
    r.fits = f.boolean("fits", false);
    r.limit = f.text("limit", "");
    readAdvice(f, r.advice);
    readList(f, "lighter", r.lighter, readLighter);
    r.reason = f.text("reason", "");
    r.device = f.text("device", "");
    r.simulatedLink = f.boolean("simulated_link", false);
    r.precision = f.text("precision", "");
    r.recompute = f.text("recompute", "");
    r.optimizer = f.text("optimizer", "");
    r.parameters = f.integer("parameters", kCount, 0);
    r.trainedParameters = f.integer("trained_parameters", kCount, r.parameters);
    r.steps = f.integer("steps", kCount, 0);
    r.tokensPerStep = f.integer("tokens_per_step", kCount, 0);
    readList(f, "tiers", r.tiers, readTier);
    readList(f, "groups", r.groups, readGroup);
    r.processBytes = f.unsignedInteger("process_bytes", 0);
    r.checkpointBytes = f.unsignedInteger("checkpoint_bytes", 0);
    r.checkpointsKept = f.integer("checkpoints_kept", kCount, 0);
    r.h2dBytesPerStep = f.integer("h2d_bytes_per_step", kCount, 0);
    r.d2hBytesPerStep = f.integer("d2h_bytes_per_step", kCount, 0);
    r.diskReadBytesPerStep = f.integer("disk_read_bytes_per_step", kCount, 0);
    r.diskWriteBytesPerStep = f.integer("disk_write_bytes_per_step", kCount, 0);
    r.diskWriteBytesOfRun = f.unsignedInteger("disk_write_bytes_of_run", 0);
    r.wear = f.text("wear", "");
    r.predictedStepMs = f.number("predicted_step_ms", 0.0);
    r.predictedComputeMs = f.number("predicted_compute_ms", 0.0);
    readStalls(f, r.predictedStallMs);
    return r;
}

} // namespace

std::string parameterWords(const PlanReport& report)
{
    if (report.trainedParameters == report.parameters)
        return fmt::format("{} parameters", report.parameters);
    return fmt::format("{} trained parameters of {}", report.trainedParameters, report.parameters);
}

std::string toJson(const PlanReport& report)
{
    const PlanReport& r = report;
    json tiers = json::array();
    for (const PlanTier& tier : r.tiers)
        tiers.push_back(tierToJson(tier));
    json groups = json::array();
    for (const PlanGroup& group : r.groups)
        groups.push_back(groupToJson(group));
    json lighter = json::array();
    for (const LighterWay& way : r.lighter)
        lighter.push_back(lighterToJson(way));
    json stalls = json::object();
    for (std::size_t i = 0; i < kStallCauses; ++i)
        stalls[std::string(kStallCauseNames[i])] = r.predictedStallMs[i];
    const json value = {{"method", r.method}, {"policy", r.policy}, {"exact", r.exact},
        {"inexact_by", r.inexactBy}, {"max_stale_steps", r.maxStaleSteps}, {"fits", r.fits},
        {"limit", r.limit}, {"advice", r.advice}, {"lighter", std::move(lighter)},
        {"reason", r.reason}, {"device", r.device}, {"simulated_link", r.simulatedLink},
        {"precision", r.precision}, {"recompute", r.recompute}, {"optimizer", r.optimizer},
        {"parameters", r.parameters}, {"trained_parameters", r.trainedParameters},
        {"steps", r.steps}, {"tokens_per_step", r.tokensPerStep}, {"tiers", std::move(tiers)},
        {"groups", std::move(groups)}, {"process_bytes", r.processBytes},
        {"checkpoint_bytes", r.checkpointBytes}, {"checkpoints_kept", r.checkpointsKept},
        {"h2d_bytes_per_step", r.h2dBytesPerStep}, {"d2h_bytes_per_step", r.d2hBytesPerStep},
        {"disk_read_bytes_per_step", r.diskReadBytesPerStep},
        {"disk_write_bytes_per_step", r.diskWriteBytesPerStep},
        {"disk_write_bytes_of_run", r.diskWriteBytesOfRun}, {"wear", r.wear},
        {"predicted_step_ms", r.predictedStepMs}, {"predicted_compute_ms", r.predictedComputeMs},
        {"predicted_stall_ms", std::move(stalls)}};
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<PlanReport> planReportFromJson(std::string_view text)
{
    Result<json> value = parseJson(text, "plan");
    MR_TRY(value.status());
    JsonFields fields(value.value(), "plan");
    PlanReport report = readReport(fields);
    MR_TRY(fields.status());
    return report;
}

} // namespace mr
