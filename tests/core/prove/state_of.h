// The master that a run keeps, all of it.

#pragma once

#include "core/prove/plain_run.h"
#include "core/step/run_master.h"
#include "support/master_buffers.h"

#include <QtTest>

namespace mr::test {

inline MasterBuffers stateOf(PlainRun& run)
{
    MasterBuffers master(run.table());
    auto state = stateMaster(run.executor(), run.memory());
    const Status status = state.ok() ? master.fill(*state.value()) : state.status();
    if (!status.ok())
        qFatal("%s", status.message().c_str());
    return master;
}

} // namespace mr::test
