// The options of `train`, shared with `plan`: from words to a RunSpec.
//
// Errors  spec(): InvalidArgument names the option and the values it takes.

#pragma once

#include "app/cli/data_options.h"

#include <millrace/run_spec.h>
#include <millrace/spec_fields.h>
#include <millrace/status.h>

#include <CLI/CLI.hpp>
#include <deque>
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
    // An option as it was given.
    struct Given {
        std::vector<const SpecField*> fields; // more than one: switches, each with its words
        CLI::Option* option = nullptr;
        std::vector<std::string> texts;
    };

    void addField(CLI::App& command, const SpecField& field);
    bool joinsAnother(const SpecField& field);
    Status readSources(RunSpec& spec) const;

    std::deque<Given> m_given; // the parser holds addresses of their texts
    DataOptions m_rows;
};

} // namespace mr::app
