#include "core/job/job_export.h"

#include "core/base/file.h"
#include "core/job/job_files.h"
#include "core/job/job_rows.h"
#include "core/job/job_source.h"
#include "core/job/job_text.h"
#include "core/job/job_weights.h"
#include "core/save/written_aside.h"

#include <array>
#include <system_error>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

Status makeJobFolder(const fs::path& folder)
{
    std::error_code error;
    fs::create_directories(folder, error);
    return error ? Status::error(
                       ErrorKind::Io, "create folder " + folder.string() + ": " + error.message())
                 : Status();
}

std::string replaced(std::string text, std::string_view place, const std::string& by)
{
    for (std::size_t at = 0; (at = text.find(place, at)) != std::string::npos; at += by.size())
        text.replace(at, place.size(), by);
    return text;
}

Status writeTexts(const JobSource& source, const fs::path& job)
{
    for (const auto& [name, text] : kJobFiles) {
        std::string own(text);
        if (name == "README.md") {
            own = replaced(std::move(own), "@FROM@", std::to_string(source.progress.step));
            own = replaced(std::move(own), "@STEPS@", std::to_string(source.spec().steps));
            own = replaced(std::move(own), "@NAME@", source.record.name);
        }
        MR_TRY(replaceFile(job / name, own));
    }
    return replaceFile(job / "job.json", jobText(source));
}

std::vector<std::string> notesOf(const JobSource& source)
{
    const RunSpec& spec = source.spec();
    std::vector<std::string> notes;
    if (isAdapterRun(spec) && spec.dropout > 0.0)
        notes.emplace_back("the adapter is trained with dropout, whose masks PyTorch draws anew: "
                           "losses are not those of resuming here");
    if (source.setup.step.precision != Precision::F32)
        notes.emplace_back("in BF16 PyTorch rounds in other places: losses agree as two runs of "
                           "other kernels do, not to the last digits");
    if (spec.keepInputs != KeepInputs::Bf16)
        notes.emplace_back("inputs of blocks are kept whole there, not in 8 bits");
    return notes;
}

Result<JobReport> writeJob(
    const JobSource& source, const fs::path& job, const WriteProgress& progress)
{
    const RunSpec& spec = source.spec();
    const BatchShape shape{spec.seqLen, spec.microBatch, spec.accumulate};
    MR_TRY(makeJobFolder(job / "data"));
    WriteMeter meter(jobBytes(source), progress);
    MR_TRY(writeJobModel(source, job, meter));
    MR_TRY(writeJobMoments(source, job / "state", meter));
    MR_ASSIGN(const JobOrder order,
        drawOrder(source.data.train, shape, source.progress.sampler, source.stepsLeft()));
    MR_TRY(writeJobRows(job / "data", source.data.train, order, source.data.eval, shape));
    MR_TRY(writeTexts(source, job));
    return JobReport{source.progress.step, spec.steps, std::ssize(order.rows), notesOf(source)};
}

} // namespace

Result<JobReport> exportJob(const fs::path& run, const fs::path& out, const WriteProgress& progress)
{
    JobReport report;
    MR_TRY(writeAside(out, [&](const fs::path& job) -> Status {
        MR_ASSIGN(const JobSource source, openJobSource(run));
        MR_ASSIGN(report, writeJob(source, job, progress));
        return {};
    }));
    return report;
}

} // namespace mr
