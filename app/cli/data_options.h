// How a dataset file is read: the options that every command with data has.
//
// Errors  source(): InvalidArgument names the option and the values it takes.

#pragma once

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace mr::app {

class DataOptions
{
public:
    // Adds --format, --map, --pairs, --chat-template, --skip-bad-rows and --exclude-rows; the
    // object must outlive the parse.
    void addTo(CLI::App& command);

    // A file that is read so.
    Result<DataSource> source(const std::string& path) const;
    // Takes the rows to exclude, which are those of the first file.
    Status exclude(DataSource& first) const;

private:
    std::string m_format = "auto";
    std::string m_map;
    std::string m_pairs = "auto";
    std::string m_chatTemplate;
    std::string m_excluded;
    bool m_skipBadRows = false;
};

} // namespace mr::app
