// The one connection of a store that writes, and its lock. The engine's writes of runs (run_store)
// and people's edits of them (run_edits) share it.
//
// Threads    A user of `database` holds `mutex`; transact() takes it.
// Errors     Those of the database, and those of the change, which is then rolled back.

#pragma once

#include "core/store/sqlite.h"

#include <memory>
#include <mutex>

namespace mr {

struct StoreConnection {
    std::mutex mutex;
    std::unique_ptr<Database> database; // guarded by mutex

    // Runs `change` (a callable giving Status) as one transaction.
    template <typename Change>
    Status transact(Durability durability, Change&& change)
    {
        const std::lock_guard lock(mutex);
        MR_ASSIGN(Transaction transaction, Transaction::begin(*database, durability));
        MR_TRY(change());
        return transaction.commit();
    }
};

} // namespace mr
