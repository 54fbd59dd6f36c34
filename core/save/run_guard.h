// Taking a run folder for one's own: locked, without the ways out of it that a stranger may have
// put there, and without the leftovers of a killed program.
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

// Locks `dir` before anything in it is read. Only the holder of the lock writes there.
Result<FolderLock> claimRunFolder(const std::filesystem::path& dir);

// Removes the files that `replaceFile` and `WholeFile` of a killed process left in the run folder
// and in its exported model. Precondition: the folder is locked.
void removeTemporaries(const std::filesystem::path& dir);

// May a run use the folder that its record names for checkpoints? Records come from strangers, too,
// so the folder must lie inside of the run folder or know this run.
bool mayUseSaveDir(const std::filesystem::path& saveDir, const std::filesystem::path& runDir,
    const std::string& uuid);

// May a run use the history that its record names? It must be the user's own, lie inside of the run
// folder, or have the run already. A refusal names the option to give.
Status mayUseDatabase(const RunSpec& spec, const std::filesystem::path& runDir);

} // namespace mr
