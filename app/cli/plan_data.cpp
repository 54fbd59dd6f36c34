#include "app/cli/plan_data.h"

#include "app/compose.h"
#include "core/base/bytes.h"
#include "core/choose/run_setup.h"
#include "core/data/documents.h"

#include <millrace/planner.h>

#include <filesystem>

namespace mr::app {
namespace {

// Larger files are looked at for their columns only: reading them takes more than a few seconds.
constexpr std::uint64_t kMostDataBytes = std::uint64_t{64} << 20;

Result<std::uint64_t> dataBytes(const RunSpec& spec)
{
    std::uint64_t bytes = 0;
    for (const auto* sources : {&spec.data, &spec.evalData})
        for (const DataSource& source : *sources) {
            std::error_code error;
            const auto size = std::filesystem::file_size(source.path, error);
            if (error)
                return Status::error(ErrorKind::Io, source.path + ": " + error.message());
            bytes += size;
        }
    return bytes;
}

// Whether the columns of every file can be trained.
Status checkColumns(const RunSpec& spec)
{
    for (const auto* sources : {&spec.data, &spec.evalData})
        for (const DataSource& source : *sources) {
            DatasetShape shape;
            MR_TRY(findShape(source, shape));
        }
    return {};
}

} // namespace

Result<LookedAt> lookAtData(RunSpec& spec)
{
    LookedAt out;
    if (spec.data.empty())
        return out;
    MR_ASSIGN(auto bytes, dataBytes(spec));
    if (bytes > kMostDataBytes) {
        MR_TRY(checkColumns(spec));
        out.advice = {"Only the columns of the data were looked at: " + formatBytes(bytes) +
                      " are more than the " + formatBytes(kMostDataBytes) +
                      " that a plan reads; `train` says what is in them."};
        return out;
    }
    // A run that cannot be planned at all is refused by the plan itself.
    auto complete = completeForMachine(spec);
    const auto setup = complete.ok() ? setUpRun(complete.value(), 0).status() : complete.status();
    if (!setup.ok()) {
        out.advice = {"The data was not looked at: " + setup.message() + "."};
        return out;
    }
    auto report = inspectRunData(complete.value());
    MR_TRY(report.status());
    out.report = std::move(report).value();
    out.advice = dataAdvice(*out.report);
    spec.steps = stepCount(spec, out.report->batchRows());
    return out;
}

} // namespace mr::app
