// Trials and setups with options as text, as they are written on the command line.

#pragma once

#include "core/choose/policy_choice.h"

#include <QtGlobal>

#include <map>
#include <string>

namespace mr::test {

inline PolicyTrial trialOf(const std::string& policy,
    const std::map<std::string, std::string>& options, Recompute recompute)
{
    auto numbers = readOptionsOf(policy, options);
    if (!numbers.ok())
        qFatal("%s", numbers.status().message().c_str());
    return {findPolicy(policy)->id, numbers.value(), recompute};
}

// The numbers are those of the options, which a test may have changed.
inline Status chooseFromOptions(RunSetup& setup)
{
    setup.asked.policyOptions = setup.spec.policyOptions;
    const Status read = readNumbers(setup);
    return read.ok() ? choosePolicy(setup) : read;
}

} // namespace mr::test
