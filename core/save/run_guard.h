// Taking a run folder for one's own: locked, without the ways out of it that a stranger may have
// put there, and without what a killed program left.
//
// Threads  Any; blocks on files.
// Errors   InvalidArgument: another process writes there, or something in the folder is not its
//          own, with its name and the way out. Io with the file.

#pragma once

#include "core/base/folder_lock.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <filesystem>
#include <string>

namespace mr {

// Before anything in `dir` is read. Whoever holds the lock is the only one who writes there.
Result<FolderLock> claimRunFolder(const std::filesystem::path& dir);

// What `replaceFile` and `WholeFile` leave of a process that was killed, in the run folder and in
// its exported model. Precondition: the folder is locked.
void removeTemporaries(const std::filesystem::path& dir);

// Of the folder that a run's record names for its checkpoints: records come from strangers, too.
// Inside of the run folder, or a folder that knows this run.
bool mayUseSaveDir(const std::filesystem::path& saveDir, const std::filesystem::path& runDir,
    const std::string& uuid);

// Of the history that it names: the user's own, one inside of the run folder, or one that has the
// run already. Else the refusal says what to name.
Status mayUseDatabase(const RunSpec& spec, const std::filesystem::path& runDir);

} // namespace mr
