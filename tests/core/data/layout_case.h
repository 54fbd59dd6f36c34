// Rows of a dataset and their expected outcome, from a file of cases.
//
// A case a line: {"layout": name, "rows": [...], and the expected outcome}.

#pragma once

#include "core/data/data_files.h"
#include "core/data/documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mr::test {

using Json = nlohmann::ordered_json;

inline std::string testFile(const std::string& name)
{
    return qEnvironmentVariable("MILLRACE_SOURCE").toStdString() + "/tests/" + name;
}

inline std::vector<Json> casesOf(const std::string& file)
{
    std::vector<Json> out;
    std::istringstream lines(readFile(testFile("core/data/goldens/" + file)));
    for (std::string line; std::getline(lines, line);)
        out.push_back(Json::parse(line));
    return out;
}

// The rows as JSON lines; `reversed`: their columns in the opposite order.
inline std::string jsonLines(const Json& rows, bool reversed = false)
{
    std::string out;
    for (const Json& row : rows) {
        std::vector<std::string> names;
        for (const auto& [name, value] : row.items())
            names.push_back(name);
        if (reversed)
            std::reverse(names.begin(), names.end());
        Json written = Json::object();
        for (const std::string& name : names)
            written[name] = row[name];
        out += written.dump() + "\n";
    }
    return out;
}

// A file's shape and how it was found.
struct Found {
    DatasetShape shape;
    Status status;

    std::string message() const { return status.message(); }
    DataRefusal refusal() const { return shape.refusal.kind; }
    std::map<std::string, std::string> mapping() const { return shape.map.asMap(); }
};

inline Found look(const Folder& folder, const std::string& name, const std::string& content,
    const std::map<std::string, std::string>& asked = {})
{
    const DataSource source{folder.write(name, content), DataFormat::Auto, asked};
    Found out;
    out.status = findShape(source, out.shape);
    return out;
}

} // namespace mr::test
