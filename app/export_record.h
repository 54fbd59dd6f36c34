// An export of a run as a row of the run's history.
//
// The run folder's record names the run and its history. A history that was lost, or does not have
// the run any more, makes no export worse, so the caller makes a note of the status.
//
// Threads  Any; blocks on files, and waits for another program's writer as every writer does.
// Errors   InvalidArgument: no history has the run. Those of the record and of the database.

#pragma once

#include <millrace/export_model.h>
#include <millrace/status.h>

namespace mr::app {

// Ok, and no row, where `order` names a model or an adapter that is no run's.
Status recordExport(const ExportOrder& order, const ExportOutcome& outcome);

} // namespace mr::app
