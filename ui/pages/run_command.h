// trainCommand(): the same run as a `millrace train` command line, for scripts and for help.

#pragma once

#include <millrace/run_spec.h>

#include <QString>

namespace mr::ui {

// Only what differs from the defaults is named. Paths are quoted for a POSIX shell.
QString trainCommand(const RunSpec& spec);

} // namespace mr::ui
