// Name of a run that made its model worse, and the sentence that says so with its figures.

#pragma once

#include "models/run_status.h"

#include <millrace/run_outcome.h>

#include <QCoreApplication>
#include <QString>

namespace mr::ui {

class OutcomeWords
{
    Q_DECLARE_TR_FUNCTIONS(mr::ui::OutcomeWords)

public:
    static ShownStatus status(const RunRow& run);
    // Empty unless the run made its model worse.
    static QString sentence(const RunRow& run);
    // "1.2289 (step 300)", or a dash.
    static QString best(const RunRow& run);
    // The loss before training that `best` is to be compared with; empty where it is not known.
    static QString before(const RunRow& run);
};

} // namespace mr::ui
