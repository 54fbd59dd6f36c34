// The run folder's own record of a run, from which a lost history is rebuilt.
//
//   run.json       the run's description (NewRun)
//   steps.jsonl    a line per optimizer step   } appended by the Recorder
//   events.jsonl   messages and named scalars  }
//   samples.jsonl  the machine, once a second  }
//
// Threads  Any; blocking (files).
// Errors   Io, or DataCorrupt with the file. Lines that were cut off by a crash are skipped.

#pragma once

#include "core/store/run_store.h"

#include <millrace/status.h>

#include <cstdint>
#include <string>

namespace mr {

// When the run begins, and again where it goes on by another plan.
Status saveRunRecord(const std::string& runDir, const NewRun& run);
Result<NewRun> readRunRecord(const std::string& runDir);

// Imports the folder into `store` and returns the run's id. What is there already is kept and not
// counted twice. A run that was not in the store is closed: "done" if its last step is the planned
// last one, else "lost". Times since the run's start are summed from the steps' wall times.
Result<std::int64_t> rebuildFromRunFolder(RunStore& store, const std::string& runDir);

} // namespace mr
