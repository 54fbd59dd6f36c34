// The subcommands of `millrace`, one small file each.
//
// A command adds itself to the parser and keeps its options alive; when it was called, its action
// returns the exit code of CLI.md: 0 done, 2 bad usage or input, 3 does not fit, 4 I/O or device
// failure, 5 failed check, 130 stopped by the user.

#pragma once

#include "app/cli/output.h"

#include <millrace/status.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mr::app {

using Action = std::function<int()>;

inline constexpr const char* kAdapterHelp =
    "Folder of a LoRA adapter in PEFT's format, which is put on the model";

// Each sets `action` when its subcommand is parsed.
void addTrain(CLI::App& app, Action& action);
void addResume(CLI::App& app, Action& action);
void addEval(CLI::App& app, Action& action);
void addGenerate(CLI::App& app, Action& action);
void addGet(CLI::App& app, Action& action);
void addExport(CLI::App& app, Action& action);
void addImport(CLI::App& app, Action& action);
void addTokenize(CLI::App& app, Action& action);
void addPlan(CLI::App& app, Action& action);
void addInspect(CLI::App& app, Action& action);
void addModels(CLI::App& app, Action& action);
void addRuns(CLI::App& app, Action& action);
void addSelftest(CLI::App& app, Action& action);
void addBench(CLI::App& app, Action& action);

int exitCode(const Status& status) noexcept;

// Prints the message to stderr (and, with `json`, an error object to stdout); returns exitCode().
int fail(const Status& status, bool json = false);

// InvalidArgument if one of the files a command was given is not there: bad input, no failure of
// the disk.
Status requireFiles(const std::vector<std::string>& paths, std::string_view option);

} // namespace mr::app
