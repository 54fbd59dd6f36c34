// The options of `train`, shared with `plan`: from words to a RunSpec.
//
// Errors  spec(): InvalidArgument names the option and what would be right.

#pragma once

#include "app/cli/data_options.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mr::app {

class SpecOptions
{
public:
    // Adds the options to `command`; the object must outlive the parse.
    void addTo(CLI::App& command, bool needsData);

    Result<RunSpec> spec() const;

private:
    void addModelAndData(CLI::App& command, bool needsData);
    void addTraining(CLI::App& command);
    void addMachine(CLI::App& command);
    Status readSources(RunSpec& spec) const;
    Status readWords(RunSpec& spec) const;
    Status readSizes(RunSpec& spec) const;

    RunSpec m_spec;
    std::vector<std::string> m_data;
    std::vector<std::string> m_evalData;
    DataOptions m_rows;
    std::string m_schedule = "cosine";
    std::string m_precision = "auto";
    std::string m_recompute = "auto";
    std::string m_device = "auto";
    std::string m_deviceMemory;
    std::string m_hostMemory;
    std::string m_diskSpace;
    std::string m_maxDiskWrites;
    std::string m_link;
    std::string m_allow = "exact";
    std::vector<std::string> m_policyOptions;
};

} // namespace mr::app
