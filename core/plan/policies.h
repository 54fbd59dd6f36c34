// Policies: combinations of answers under a name (core/architecture.md section 4), and the facts
// that other rooms need of each. Nothing outside compares names.
//
// Threads  Pure.
// Errors   InvalidArgument names the policy or option, and lists the names to use.

#pragma once

#include "core/plan/policy.h"
#include "core/plan/policy_options.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct PolicyInfo {
    PolicyId id{};
    std::string_view name;      // "zero-offload": command line, files
    std::string_view plainName; // "state in RAM": beside it, for people
    bool exact = true;          // by default, the weights of `resident` bit for bit
    bool isAllOnDevice = false; // nothing crosses the link but batches
    bool streams = false;       // the weights of blocks visit the device
    bool usesDisk = false;      // needs a scratch folder; others may use one
    bool isBalanced = false;    // its device share follows from the measured rates
    bool hasWindows = false;    // the host updates once for several steps
    unsigned takes = 0;         // options, by Takes

    OptionTaker taker() const noexcept { return {name, takes}; }
    bool doesTake(Takes group) const noexcept { return (takes & group) != 0; }
};

// From the simplest to the most involved.
const std::vector<PolicyInfo>& policyTable();
const PolicyInfo& policyInfo(PolicyId id);
const PolicyInfo* findPolicy(std::string_view name); // null: there is none, or it is "auto"

// Options that the policy does not take, or that do not go together, are refused.
Result<OffloadPolicy> makePolicy(PolicyId id, const PolicyNumbers& numbers);

// How a run changes weights, and, where that is not AdamW, keeps them.
struct LightChoice {
    Optimizer optimizer = Optimizer::AdamW;
    StateCodec state = StateCodec::Bits24;
};

// With the texts of `--policy-option`.
Result<OffloadPolicy> makePolicy(std::string_view name,
    const std::map<std::string, std::string>& options, LightChoice light = {});

// The options of a policy, or, for "auto", of any. Refuses names that are not known.
Result<PolicyNumbers> readOptionsOf(
    std::string_view policy, const std::map<std::string, std::string>& options);

} // namespace mr
