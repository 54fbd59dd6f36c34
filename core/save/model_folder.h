// Which model folder is meant by the path of a model, a checkpoint or a run.
//
// Threads  Any; looks at folders.
// Errors   InvalidArgument: a run that has no model and no checkpoint yet.

#pragma once

#include <millrace/status.h>

#include <string>

namespace mr {

// A checkpoint's own model; of a run the one it ended with, else that of its newest complete
// checkpoint. Any other path is returned as it is: opening it reports the fault.
Result<std::string> modelFolderOf(const std::string& path);

// Whether the run that this folder is, or lies in, was trained on prompts and answers. False for a
// model on its own, and for runs of programs that did not record it.
bool isTrainedOnPrompts(const std::string& path);

} // namespace mr
