// RunFigures: one run in a few numbers, to be put beside those of another.
//
// All figures cover the steps that the run has, so that the mean of the ledger's rows is the mean
// step that is shown, and the parts of the bar add up to it.
//
// Threads  A value.
// Units    Microseconds in *Us, bytes in *Bytes; NaN: not known.

#pragma once

#include "math/stall_bars.h"
#include "models/run_snapshot.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <string>

namespace mr::ui {

struct RunFigures {
    std::int64_t runId = 0;
    std::string name;
    bool isEnded = false;
    QString policy;         // empty: not known
    QString method;         // as methodOf()
    bool isPlanned = false; // a plan was read: the next two are known
    bool exact = true;
    int maxStaleSteps = 0;
    std::string inexactBy; // as PlanReport's

    LedgerTotals ledger;
    std::int64_t totalSteps = 0; // 0: not known
    double meanStepUs;
    double stepErrorUs; // standard error of the mean; 0: fewer than two steps
    double tokensPerSecond;
    double stallShare;    // 0 to 1
    double activeSeconds; // with evaluations and checkpoints
    double toDeviceBytes; // per step, on average
    double toHostBytes;
    std::int64_t devicePeakBytes = 0;
    std::int64_t hostPeakBytes = 0;
    double bestEval;
    double lastLoss; // smoothed over kLossWindow steps
};

inline constexpr double kLossWindow = 25.0; // steps

RunFigures figuresOf(const RunSnapshot& run);
// Name of the policy that the run was planned with; the one asked for, if it has no plan.
QString policyOf(const RunRow& run);
// "adapter, rank 16" or "layers 20-31"; empty: all of the model is trained.
QString methodOf(const RunRow& run);

// The loss of both runs at the last step that both have one of: on held-out data, if both were
// evaluated at one step; else smoothed.
struct CommonLoss {
    bool known = false;
    bool heldOut = false;
    std::int64_t step = 0;
    double first = 0.0;
    double second = 0.0;
};

CommonLoss commonLoss(const RunSnapshot& first, const RunSnapshot& second);

// Settings that both runs have and that differ, "seed: 1, 2", without those that name the run and
// its policy; budgets only if they are far apart. A comparison of policies has none.
QStringList otherDifferences(const RunRow& first, const RunRow& second);

} // namespace mr::ui
