// The options and the output of `millrace bench disk`.

#pragma once

#include <millrace/status.h>

#include <CLI/CLI.hpp>
#include <string>

namespace mr::app {

struct DiskBenchOptions {
    std::string folder = ".";
    std::string bytes = "1GiB";
    std::string block = "1MiB";
    std::string engine = "auto";
    double seconds = 15.0;
    int depth = 16;
    bool tune = false;
};

void addDiskBenchOptions(CLI::App& command, DiskBenchOptions& options);

// Measures, prints a row for each of read, write and mixed, and keeps the rates for plans unless an
// engine was asked for.
Status printDiskBench(const DiskBenchOptions& options, bool json);

} // namespace mr::app
