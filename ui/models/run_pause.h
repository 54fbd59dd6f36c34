// Why a run is paused, from its messages, and in words.
//
// Threads  Pure.

#pragma once

#include "models/run_snapshot.h"

#include <QCoreApplication>
#include <QString>

#include <cstdint>
#include <optional>

namespace mr::ui {

struct RunPause {
    bool isQuota = false; // full for this user
    bool isFull = false;  // else it is for another reason that nothing can be written
    bool isModel = false; // the trained model, not a checkpoint
    std::int64_t step = 0;
    QString folder;
    double neededBytes = 0.0;
    double freeBytes = 0.0;
    QString why;
};

// Empty: it is not paused, or the message is not there yet.
std::optional<RunPause> pauseOf(const RunSnapshot& snapshot);

struct RunPauseText {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::RunPauseText)

public:
    static QString title(const RunPause& pause);
    static QString sentence(const RunPause& pause);
};

} // namespace mr::ui
