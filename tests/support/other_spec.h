// Specs in which settings have a value that is not their default.

#pragma once

#include <millrace/spec_fields.h>

#include <variant>

namespace mr::test {

// A value of each kind that no default has and that all ranges allow.
struct OtherValue {
    RunSpec& spec;

    void operator()(std::string RunSpec::*m) const { spec.*m = "it's other"; }
    void operator()(std::int64_t RunSpec::*m) const { spec.*m += 3; }
    void operator()(std::uint64_t RunSpec::*m) const { spec.*m = (std::uint64_t{1} << 61) + 1024; }
    void operator()(double RunSpec::*m) const { spec.*m = 0.1234567890123456; }
    void operator()(bool RunSpec::*m) const { spec.*m = !(spec.*m); }
    void operator()(PrecisionChoice RunSpec::*m) const { spec.*m = PrecisionChoice::F32; }
    void operator()(RecomputeChoice RunSpec::*m) const { spec.*m = RecomputeChoice::Block; }
    void operator()(KeepInputs RunSpec::*m) const { spec.*m = KeepInputs::Int8; }
    void operator()(Optimizer RunSpec::*m) const { spec.*m = Optimizer::AdaLomo; }
    void operator()(WeightFormat RunSpec::*m) const { spec.*m = WeightFormat::Random16; }
    void operator()(TrainOrder RunSpec::*m) const { spec.*m = TrainOrder::Blocks; }
    void operator()(ScheduleKind RunSpec::*m) const { spec.*m = ScheduleKind::Linear; }
    void operator()(DeviceChoice RunSpec::*m) const { spec.*m = DeviceChoice::Cpu; }
    void operator()(std::vector<DataSource> RunSpec::*m) const
    {
        spec.*m = {{"a b.jsonl", DataFormat::Auto, {}}, {"c", DataFormat::Auto, {}}};
    }
    void operator()(std::vector<std::string> RunSpec::*m) const { spec.*m = {"/one", "/t w o"}; }
    void operator()(std::map<std::string, std::string> RunSpec::*m) const
    {
        spec.*m = {{"late", "0.5"}, {"order", "by-layer"}};
    }
};

inline void setOther(const SpecField& field, RunSpec& spec)
{
    std::visit(OtherValue{spec}, field.member);
}

} // namespace mr::test
