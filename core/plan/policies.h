// Names -> combinations of answers: the table of core/architecture.md section 4
// (core/plan/policies.cpp).
//
// Threads  Pure.
// Errors   InvalidArgument names the policy or option, and lists what is built.

#pragma once

#include "core/plan/policy.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Options are those of `--policy-option`; unknown ones, and those of other policies, are refused.
Result<OffloadPolicy> makePolicy(
    std::string_view name, const std::map<std::string, std::string>& options);

struct PolicyInfo {
    std::string_view name;
    bool exact = true;
};

const std::vector<PolicyInfo>& policyTable();

} // namespace mr
