#include <millrace/run_spec.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace mr {

using nlohmann::json;

// By the fields of the record, so that a new one is never forgotten here.
RunSpec edited(const RunSpec& given, const RunSpec& shown, const RunSpec& now)
{
    json fields = json::parse(toJson(given));
    const json before = json::parse(toJson(shown));
    const json after = json::parse(toJson(now));
    for (const auto& [name, value] : after.items())
        if (value != before.at(name))
            fields[name] = value;
    Result<RunSpec> read = runSpecFromJson(fields.dump());
    return read.ok() ? std::move(read).value() : now;
}

} // namespace mr
