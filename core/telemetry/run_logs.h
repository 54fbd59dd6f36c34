// RunLogs: the files of a run folder that grow with the run (run_folder.h says which).
//
// Threads  One.
// Errors   Io with the file. After the first nothing more is written: a log with a hole in it would
//          be believed.

#pragma once

#include "core/base/file.h"
#include "core/store/run_store.h"

#include <millrace/status.h>

#include <filesystem>

namespace mr {

class RunLogs
{
public:
    // Creates missing files and continues the others.
    Status open(const std::filesystem::path& runDir);
    // A line for each record. The first failure is returned once.
    Status append(const StoreBatch& batch);
    // Steps and messages are on the disk.
    Status sync();

private:
    File m_steps;
    File m_events;
    File m_samples;
    bool m_failed = false;
};

} // namespace mr
