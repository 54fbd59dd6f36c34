// trainCommand(): the same run as a `millrace train` command line, for scripts and for help.

#pragma once

#include <millrace/run_spec.h>

#include <QString>

namespace mr::ui {

// Only settings that differ from the defaults are named. Paths are quoted for a POSIX shell.
QString trainCommand(const RunSpec& spec);

// Settings without an editor on the page, as options of the command line; empty: as usual.
QString keptSettings(const RunSpec& spec);

} // namespace mr::ui
