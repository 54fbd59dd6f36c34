// Exports by order of the command line or the window: one function for every form. An export of a
// run is entered in its history, with the verdict of its check.
//
// Threads  One thread; blocks on files and the device. `watch` is called by it.
// Errors   InvalidArgument: a type that the form has not; those of the form. Cancelled where
//          `watch` stopped it. Nothing is left behind then.

#pragma once

#include <millrace/export_model.h>
#include <millrace/status.h>

namespace mr::app {

Result<ExportOutcome> writeExport(const ExportOrder& order, const ExportProgress& watch = {});

} // namespace mr::app
