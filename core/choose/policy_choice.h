// Which policy a run takes: tried out as plans, compared by bytes and by forecast.
//
// Threads  Pure.
// Errors   Those of makePolicy() and planMemory(). That nothing fits is no error: RunSetup::limit.

#pragma once

#include "core/choose/run_setup.h"

#include <span>

namespace mr {

// One way to do a run.
struct PolicyTrial {
    PolicyId policy{};
    PolicyNumbers numbers;
    Recompute recompute = Recompute::None;
};

// Does the program choose the policy?
inline bool isAuto(const RunSpec& spec)
{
    return spec.policy == "auto";
}

// Does the policy train that part of a model? An adapter's state is small and stays on the device,
// so only the home of the model beside it is left to choose. Windows are of whole models.
bool doesTrain(const PolicyInfo& policy, const RunSpec& spec, const ModelShape& shape) noexcept;

// The policy's numbers that a spec says, with the optimizer they are for.
Result<PolicyNumbers> numbersOf(const RunSpec& spec);
// Reads the numbers of the run from its spec, and those that were asked for.
Status readNumbers(RunSetup& setup);

// Makes `numbers` those of the run, also in the spec that its record keeps.
void keepNumbers(RunSetup& setup, PolicyNumbers numbers);

// Sets policy, memory plan, limit, forecast and traffic of `setup` to those of `trial`.
Status planWith(RunSetup& setup, const PolicyTrial& trial);

// Takes the fastest of `trials` that fits, by forecast; without rates the first. Passes over trials
// with options that their policy does not take. If nothing fits, takes the trial that lacks least,
// and setup.limit says how much. Precondition: one of them can be planned.
Status chooseAmong(RunSetup& setup, std::span<const PolicyTrial> trials);

// Makes the choices that spec.policy, its options and spec.recompute leave open: by forecast the
// fastest that fits; without rates the first that fits, from everything on the device without
// recomputation to everything on the host with it. If nothing fits, takes the plan that lacks
// least, and `limit` says how much.
Status choosePolicy(RunSetup& setup);

} // namespace mr
