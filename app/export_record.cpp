#include "app/export_record.h"

#include "core/save/model_folder.h"
#include "core/save/run_files.h"
#include "core/save/run_guard.h"
#include "core/store/run_store.h"
#include "core/telemetry/run_folder.h"

#include <millrace/run_reader.h>
#include <millrace/session.h>

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace mr::app {
namespace {

namespace fs = std::filesystem;

ExportRow rowOf(const ExportOrder& order, const ExportOutcome& outcome)
{
    ExportRow row;
    row.form = infoOf(order.form).name;
    row.type = outcome.type;
    std::error_code failed;
    const fs::path whole = fs::absolute(outcome.path, failed);
    row.path = failed ? outcome.path : whole.lexically_normal().string();
    row.bytes = static_cast<std::int64_t>(outcome.bytes);
    row.passed = outcome.passed();
    row.facts = outcome.facts;
    row.faults = outcome.faults;
    row.notes = outcome.notes;
    row.createdMs = wallClockMs();
    return row;
}

Status unknownIn(const std::string& database, const fs::path& run)
{
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("{} does not have the run {}; `millrace runs rebuild {}` enters the run, and "
                    "its next exports are kept",
            database, run.string(), run.string()));
}

// A history is not made here: the run began in one, or came from elsewhere.
Status enter(
    const std::string& database, const std::string& uuid, const fs::path& run, const ExportRow& row)
{
    std::error_code failed;
    if (!fs::is_regular_file(database, failed))
        return unknownIn(database, run);
    MR_ASSIGN(const auto store, RunStore::open(database));
    const Result<std::int64_t> id = store->findRun(uuid);
    if (!id.ok() && id.status().kind() == ErrorKind::InvalidArgument)
        return unknownIn(database, run);
    MR_TRY(id.status());
    return store->edits().addExport(Result(id).value(), row);
}

} // namespace

// The user's own history is asked, too: a run that came from another machine was entered there.
Status recordExport(const ExportOrder& order, const ExportOutcome& outcome)
{
    const fs::path run = runFolderOf(order.adapter.empty() ? order.model : order.adapter);
    if (run.empty())
        return {};
    MR_ASSIGN(const RunSpec spec, readRunSpec(run.string()));
    MR_ASSIGN(const NewRun record, readRunRecord(run.string()));
    const ExportRow row = rowOf(order, outcome);
    const std::string own = defaultDatabasePath();
    if (spec.database.empty() || spec.database == own)
        return enter(own, record.uuid, run, row);
    // The record may be a stranger's: nothing is written to a history that does not know the run.
    const Status entered = mayUseDatabase(spec, run).ok()
                               ? enter(spec.database, record.uuid, run, row)
                               : unknownIn(spec.database, run);
    return entered.ok() || !enter(own, record.uuid, run, row).ok() ? entered : Status();
}

} // namespace mr::app
