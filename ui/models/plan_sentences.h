// What of a plan binds, in the language of the window. Where its tiers do not tell, the engine's
// words are shown.

#pragma once

#include <millrace/planner.h>

#include <QCoreApplication>
#include <QString>

namespace mr::ui {

class PlanSentences
{
    Q_DECLARE_TR_FUNCTIONS(mr::ui::PlanSentences)

public:
    static QString limit(const PlanReport& plan); // empty: it fits
};

} // namespace mr::ui
