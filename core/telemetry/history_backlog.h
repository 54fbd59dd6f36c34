// HistoryBacklog: rows and changes of one run that the history has not taken yet.
//
// Rows that the database refused are kept and offered again with the next batch; appending is
// idempotent. Beyond a bound only the run folder has them. Samples of the machine are held back for
// a while, because each rewrites rows of some KiB: at most a thirtieth of the run's time so far,
// and ten seconds.
//
// Threads   One owner: the telemetry thread.
// Lifetime  Borrows the store.
// Errors    offer(): those of the store; Io if its file was deleted or replaced.

#pragma once

#include "core/store/run_store.h"

#include <millrace/status.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace mr {

class HistoryBacklog
{
public:
    using Change = std::function<Status()>; // to a row of the history that no batch has

    HistoryBacklog(RunStore& store, std::int64_t runId)
        : m_store(store)
        , m_runId(runId)
    {
    }

    // `isAsked`: somebody waits for the rows, so no sample is held back.
    void keep(StoreBatch batch, bool isAsked);
    // Changes follow the rows that were kept before, in their own order.
    void change(Change change) { m_changes.push_back(std::move(change)); }

    // Offers everything; `durably`: until it is on the disk. True if something was committed, also
    // where a later part failed.
    Status offer(bool durably, bool& isCommitted);

private:
    void holdSamples(StoreBatch& batch, bool isAsked);
    Status presence() const;

    RunStore& m_store;
    const std::int64_t m_runId;
    StoreBatch m_unsaved;
    std::vector<MachineSample> m_held;
    std::deque<Change> m_changes;
};

} // namespace mr
