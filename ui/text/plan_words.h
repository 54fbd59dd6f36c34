// The words and colours of a plan: kinds of bytes, tiers, the tier that limits it.

#pragma once

#include "text/theme_colors.h"

#include <millrace/planner.h>

#include <QCoreApplication>
#include <QString>

#include <string>

namespace mr::ui {

struct PlanWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::PlanWords)

public:
    // A kind that is not known is shown as the engine names it.
    static QString kind(const std::string& name);
    static QColor kindColor(const std::string& name, const ThemeColors& colors);
    static QString exactness(bool exact, int maxStaleSteps,
        const std::string& inexactBy);             // "exact", "at most 7 steps stale"
    static QString policy(const PlanReport& plan); // "zenflow, at most 7 steps stale"
    static QString tier(const std::string& name);  // "Device memory"
    // Words for the tier that is too small; empty: the plan fits. If none is, the engine's words.
    static QString limit(const PlanReport& plan);
};

} // namespace mr::ui
