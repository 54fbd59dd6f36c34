#include <millrace/planner.h>
#include <millrace/spec_fields.h>

namespace mr {

RunSpec edited(const RunSpec& given, const RunSpec& shown, const RunSpec& now)
{
    RunSpec spec = given;
    for (const SpecField& field : specFields())
        std::visit(
            [&](auto member) {
                if (now.*member != shown.*member)
                    spec.*member = now.*member;
            },
            field.member);
    return spec;
}

void takeAdapterOptions(const RunSpec& from, RunSpec& spec)
{
    for (const std::string_view key : adapterKeys())
        std::visit([&](auto member) { spec.*member = from.*member; }, findSpecField(key)->member);
}

RunSpec withLighterWay(RunSpec spec, const LighterWay& way)
{
    spec.policy = "auto";
    spec.policyOptions.clear();
    spec.diskPaths.clear();
    if (way.compactState)
        spec.policyOptions["state"] = "compact";
    if (way.blocks)
        spec.train = TrainOrder::Blocks;
    spec.optimizer = way.optimizer;
    spec.weights = way.weights;
    return spec;
}

} // namespace mr
