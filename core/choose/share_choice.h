// Whether a run of deep-optimizer-states goes on with another device share, now that its rates are
// measured.
//
// The share that balances the measured rates is planned beside the one the run has, and both are
// forecast by those rates. Exchanging the plan costs time once and pays in every step that is left.
// The forecasts decide, not the balance: the balance knows neither the rest of a step nor how many
// bytes compact state has.
//
// Threads  Pure.
// Errors   Those of planning; Internal if the run has no share.
// Units    Seconds.

#pragma once

#include "core/choose/run_setup.h"

#include <millrace/status.h>

#include <string>

namespace mr {

// Does the program choose the share? Not one the user gave, and not one a resumed run finds in its
// record: the record does not say whether the user chose it.
bool isShareOpen(const RunSetup& setup);

struct ShareDecision {
    bool isWorthIt = false;
    double shareNow = 0.0;
    double shareNew = 0.0;
    double secondsNow = 0.0; // a step, by forecast; 0: not known
    double secondsNew = 0.0;
};

// By the forecasts alone: is the gain more than 3 % of a step, below which a forecast says nothing,
// and over all steps left more than the cost of the exchange?
bool paysToExchange(
    double secondsNow, double secondsNew, StepIndex stepsLeft, double costSeconds) noexcept;

// `setup` is the plan the run has, `measured` the rates of its steps, `costSeconds` the time of the
// exchange: a checkpoint, unless there is one, and opening the run again.
Result<ShareDecision> decideShare(
    const RunSetup& setup, const Feedback& measured, StepIndex stepsLeft, double costSeconds);

// The setup with which the run goes on where the exchange is worth it.
Result<RunSetup> withShare(const RunSetup& before, double share, const Feedback& measured);

// For the log: the measured rates and the decision.
std::string shareWords(const ShareDecision& decision, const Feedback& measured);

} // namespace mr
