// lightUpdate. No tolerance: the order of core/device/light_update.h fixes every bit.

#include "core/prove/conformance_planes.h"

namespace mr::conformance {
namespace {

Input divisors(CaseRun& run, std::int64_t count)
{
    Values values = run.random(DType::F32, {count}).values;
    for (double& value : values)
        value = static_cast<double>(asFloat(std::abs(value) + 0.125));
    return run.given(DType::F32, {count}, values);
}

// Inputs of an update beside the weight.
struct LightInputs {
    Input grad, rowRoots, columnRoots;
    float size, decay, clipFactor;
    bool hasRoots;
};

std::vector<Planes> updatedInOrder(const std::vector<Planes>& before, MasterPlanes format,
    const LightRange& range, const LightInputs& in)
{
    std::vector<Planes> after;
    for (std::int64_t i = 0; i < range.count; ++i) {
        const std::int64_t element = range.first + i;
        float u = asFloat(in.grad(i)) * in.clipFactor;
        if (in.hasRoots)
            u = u / (asFloat(in.rowRoots(element / range.cols)) *
                        asFloat(in.columnRoots(element % range.cols)));
        const float p = masterOf(format, before[static_cast<std::size_t>(i)]) * in.decay;
        after.push_back(planesOf(format, std::fma(-in.size, u, p), randomOf(element)));
    }
    return after;
}

LightUpdateArgs lightArgs(CaseRun& run, const LightInputs& in, const LightRange& range, Step step)
{
    StepScalars scalars;
    scalars.clipFactor = in.clipFactor;
    scalars.finite = step == Step::NotFinite ? 0 : 1;
    LightUpdateArgs args;
    args.grad = in.grad.view;
    if (in.hasRoots) {
        args.rowRoots = in.rowRoots.view;
        args.columnRoots = in.columnRoots.view;
    }
    args.size = run.given(DType::F32, {1}, {static_cast<double>(in.size)}).view;
    args.scalars = run.given(DType::U8, {sizeof scalars}, bytesOf(scalars)).view;
    args.first = range.first;
    args.cols = range.cols;
    args.decay = 0.9999F;
    args.decayed = step == Step::Decayed;
    args.key = kLightKey;
    args.counter = kLightCounter;
    return args;
}

void lightUpdate(
    CaseRun& run, MasterPlanes format, const LightRange& range, bool hasRoots, Step step)
{
    const std::vector<Planes> before = somePlanes(run, format, range.count);
    const LightInputs in{run.random(DType::F32, {range.count}), divisors(run, range.rows),
        divisors(run, range.cols), 0.13F, step == Step::Decayed ? 0.9999F : 1.0F, 0.7F, hasRoots};
    LightUpdateArgs args = lightArgs(run, in, range, step);
    givePlanes(run, format, before, args);
    run.call(run.ops().lightUpdate(args, run.stream()));
    const std::vector<Planes> want =
        step == Step::NotFinite ? before : updatedInOrder(before, format, range, in);
    expectPlanes(run, want, args);
}

void addRangeCases(Table& table, const LightRange& range)
{
    const std::string shape = describe(range);
    for (const auto& [format, name] : kMasterFormats)
        for (const bool hasRoots : {false, true})
            for (const auto& [step, words] : kSteps)
                push(table, "lightUpdate",
                    name + std::string(words) + (hasRoots ? " with roots" : "") + shape,
                    range.count, [=, format = format, step = step](CaseRun& run) {
                        lightUpdate(run, format, range, hasRoots, step);
                    });
}

} // namespace

void addLightUpdateCases(Table& table)
{
    Table late;
    for (const LightRange& range : kLightRanges) {
        addRangeCases(table, range);
        if (range.cols % 8 == 0 && range.count < 10'000)
            addRangeCases(late, range);
    }
    addLateStarts(table, late);
}

} // namespace mr::conformance
