#include "core/model/layout.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/plan/memory_plan.h"
#include "core/plan/plan_builder.h"
#include "core/plan/policies.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <algorithm>

namespace mr::fuzz {
namespace {

constexpr std::int64_t kMostLayers =
    64; // deeper models get no step plan: it would take long and show nothing more

void plan(const ModelConfig& config, const ParamTable& table)
{
    const std::int64_t tokens = std::min<std::int64_t>(config.maxPositions, 1024);
    const ModelShape shape = modelShape(config, table, {tokens, 1, 2, DType::BF16});
    StepSpec step;
    step.microBatches = 2;
    for (const char* name : {"resident", "zero-offload", "streamed", "zenflow"}) {
        Result<OffloadPolicy> policy = makePolicy(name, {});
        require(policy.ok(), "a policy that is built");
        Result<MemoryPlan> memory = planMemory(step, shape, {}, {}, policy.value());
        if (!check(memory))
            continue;
        require(memory.value().bytes(Tier::Device) > 0, "a plan of no bytes");
        if (config.layers > kMostLayers)
            continue;
        BuiltStep built;
        step.step = 1;
        PlanBuilder builder(shape, {}, {}, policy.value());
        (void)check(builder.buildPlanInto(step, {}, {}, built));
    }
}

} // namespace

void config(std::string_view bytes)
{
    Result<ModelConfig> parsed = parseModelConfig(bytes, "config.json");
    if (!check(parsed))
        return;
    const ModelConfig& config = parsed.value();
    const ParamTable table = buildParamTable(config);
    require(table.parameters > 0, "a model of no parameters");
    require(table.groups.size() == static_cast<std::size_t>(config.layers) + 2, "other groups");
    for (const ParamGroup& group : table.groups)
        require(group.elements > 0, "a group of no elements");
    plan(config, table);
}

} // namespace mr::fuzz
