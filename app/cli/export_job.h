// `millrace export --to torchrun` and `millrace import`: a run that goes on elsewhere, and back.

#pragma once

#include <string>

namespace mr::app {

// Returns the exit code.
int exportTorchrun(const std::string& run, const std::string& out, bool json);

} // namespace mr::app
