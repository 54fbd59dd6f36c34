// Choices of the Try it page: models, runs, and the run that goes on.

#pragma once

#include <millrace/run_reader.h>

#include <QCoreApplication>
#include <QString>

#include <string>
#include <vector>

namespace mr::ui {

struct TryChoice {
    QString label;
    std::string path; // model folder or run folder; empty for the live run
    qint64 runId = 0; // 0: a model
    bool isLive = false;

    bool operator==(const TryChoice&) const = default;
};

class TryChoices
{
    Q_DECLARE_TR_FUNCTIONS(mr::ui::TryChoices)

public:
    // The models that runs began with, newest first, each once. A run from random weights has none.
    static std::vector<TryChoice> models(const std::vector<RunRow>& runs);
    // The live run first (0: there is none), then those that may have a model, newest first.
    static std::vector<TryChoice> runs(const std::vector<RunRow>& runs, qint64 liveRun);
};

} // namespace mr::ui
