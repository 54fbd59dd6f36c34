// Steps before the window: no second window over one history, and a history that opens.
//
// Threads  UI thread; blocks, with dialogs where something is wrong.

#pragma once

#include "bridge/single_instance.h"
#include "core/store/run_store.h"

#include <QString>

#include <memory>

namespace mr::app {

struct Start {
    std::unique_ptr<ui::SingleInstance> instance;
    std::unique_ptr<RunStore> store; // null: the program ends
    int exitCode = 0;                // with this
};

// `database` empty: the user's history. With `newWindow` another window is no reason to end.
Start prepareStart(const QString& database, bool newWindow);

} // namespace mr::app
