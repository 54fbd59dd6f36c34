// The name of a model on this machine in the place of its path: `--model Qwen/Qwen3-0.6B`.

#pragma once

#include <CLI/CLI.hpp>

namespace mr::app {

// The option takes either (localModelPath()). What it refuses is an error of the command line.
void takeLocalName(CLI::Option& option);

} // namespace mr::app
