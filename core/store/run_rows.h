// The rows that a run begins with: its own, its model's and dataset's, its settings, its place in
// the search.
//
// Threads  The caller's, which holds the store's lock and a transaction.
// Errors   Those of the database; InvalidArgument for a run that is there already, and for a
//          configuration that is no JSON object.
// Units    Milliseconds since the epoch.

#pragma once

#include "core/store/process_identity.h"
#include "core/store/run_store.h"
#include "core/store/sqlite.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mr {

// The id of the new run.
Result<std::int64_t> insertRun(Database& database, const NewRun& run, std::int64_t nowMs);
// One row per leaf of the configuration: "policyOptions.urgent" -> "0.1".
Status insertParameters(Database& database, std::int64_t runId, const std::string& configJson);
// Puts another configuration in the place of the run's, with its parameters.
Status replaceConfig(Database& database, std::int64_t runId, const std::string& configJson);
// After a change of a column that the search reads.
Status refreshSearch(Database& database, std::int64_t runId);
Status runMustExist(Database& database, std::int64_t runId);
Result<std::string> nameOfRun(Database& database, std::int64_t runId); // which must exist
// A tag that nobody has is not offered.
Status dropUnusedTags(Database& database);

// The last segment of a run, if it was never closed.
struct OpenSegment {
    std::int64_t number = 0;
    ProcessIdentity process;
    bool begun = false; // beginSegment() was called
};

Result<std::optional<OpenSegment>> openSegment(Database& database, std::int64_t runId);

} // namespace mr
