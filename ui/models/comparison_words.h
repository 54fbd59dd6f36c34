// Two runs compared in a sentence: time per step, time waited, loss.
//
// Threads  GUI (the current translation).

#pragma once

#include "models/run_figures.h"

#include <QCoreApplication>
#include <QString>

#include <array>

namespace mr::ui {

class ComparisonWords
{
    Q_DECLARE_TR_FUNCTIONS(mr::ui::ComparisonWords)

public:
    // Labels that tell the two apart: their policies, or their names if they have one policy, or
    // their numbers if they have one name.
    static std::array<QString, 2> labels(const RunFigures& first, const RunFigures& second);
    // "exact", "at most 7 steps stale"; a dash without a plan.
    static QString exactness(const RunFigures& run);
    // "zenflow: 1.8 times faster per step than zero-offload, stalled 2 % instead of 41 %; held-out
    // loss 2.310 against 2.300 at step 300." Empty while one of them has no steps.
    static QString sentence(
        const RunFigures& first, const RunFigures& second, const CommonLoss& loss);

private:
    static QString speed(const RunFigures& first, const RunFigures& second);
    static QString lossPart(const CommonLoss& loss);
};

} // namespace mr::ui
