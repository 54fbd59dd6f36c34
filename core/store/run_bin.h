// Runs that were deleted: hidden at first, restored or erased later. The half of RunEdits that
// touches files; <millrace/run_edits.h> has the promise of each function.
//
// Threads    As RunEdits.
// Ownership  Borrows the connection.
// Errors     As RunEdits.

#pragma once

#include "core/store/run_leftovers.h"
#include "core/store/store_connection.h"

#include <millrace/run_edits.h>

#include <cstdint>
#include <vector>

namespace mr {

class RunBin
{
public:
    using Ids = RunEdits::Ids;

    explicit RunBin(StoreConnection& connection);

    Result<std::vector<std::int64_t>> remove(Ids runs);
    Status restore(Ids runs);
    Result<RunFiles> filesOf(Ids runs);
    Status erase(Ids runs, std::uint64_t confirmedBytes);
    Status expire(std::int64_t ageMs);

private:
    // With the lock.
    Result<bool> isGoingOn(std::int64_t runId);
    Status mustBeAtRest(std::int64_t runId);
    Status mustBeDeleted(std::int64_t runId);

    Result<RunPlaces> placesOf(std::int64_t runId);
    Status addNeeds(Ids runs, RunFiles& files);
    Status removeSeries(std::int64_t runId);
    Status forget(std::int64_t runId, bool withCheckpoints);
    Status giveBackPages();

    StoreConnection& m_connection;
    Database& m_database; // guarded by the connection's mutex
};

} // namespace mr
