// Weights and optimizer state of a checkpoint, by the names of tensors.
//
// Threads    One thread; blocks on files.
// Ownership  A reader borrows the table, which outlives it.
// Errors     DataCorrupt names a file whose state is missing or of another length; else those of
//            saveModel() and savePeft(). InvalidArgument: the model beside an adapter is another
//            one than the run began with. Those of the meter.

#pragma once

#include "core/base/write_progress.h"
#include "core/job/job_source.h"
#include "core/model/master.h"

#include <millrace/status.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace mr {

// The weights that a checkpoint of a whole model or of some layers trained, in F32: BF16 weights in
// model/ with the low halves of state/.
Result<std::unique_ptr<MasterReader>> openCheckpointMaster(const JobSource& source);

// A trained tensor: its name where PyTorch holds it, its elements in a group, and whether weight
// decay applies. Adapters have the names of their files.
struct JobTensor {
    std::string name;
    std::vector<std::int64_t> shape;
    MasterRange range;
    bool decayed = false;
};
std::vector<JobTensor> jobTensors(const ParamTable& trained);

// Bytes of tensors that the next two write.
std::uint64_t jobBytes(const JobSource& source);
// model/, and of an adapter the model as it is, beside adapter/.
Status writeJobModel(const JobSource& source, const std::filesystem::path& job, WriteMeter& meter);
// exp_avg.safetensors and exp_avg_sq.safetensors, with the names of jobTensors().
Status writeJobMoments(
    const JobSource& source, const std::filesystem::path& folder, WriteMeter& meter);

} // namespace mr
