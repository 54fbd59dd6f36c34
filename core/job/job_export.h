// A job for PyTorch's FSDP2 that continues a run on another machine.
//
//     JOB/
//         model/              the weights in F32, or the model beside an adapter; tokenizer, config
//         adapter/            PEFT's format; of a run of an adapter
//         state/              AdamW's moments in F32, by the names of tensors
//         data/               rows, their order from the checkpoint's step on, the evaluation set
//         job.json            settings, schedule, what is trained
//         train.py            torch, transformers and peft; nothing of ours
//         job.sbatch  requirements.txt  README.md
//
// The moments are no distributed checkpoint of PyTorch: its .metadata is a pickle of classes of a
// version, and train.py reads a tensor's rows from safetensors as easily.
//
// Threads  One thread; blocks on files.
// Errors   Those of openJobSource(); InvalidArgument: the folder is there already. Nothing is left
//          behind where it fails.

#pragma once

#include "core/base/write_progress.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mr {

struct JobReport {
    std::int64_t fromStep = 0;
    std::int64_t steps = 0; // the last one
    std::int64_t rows = 0;
    std::vector<std::string> notes; // of what will differ
};

Result<JobReport> exportJob(const std::filesystem::path& run, const std::filesystem::path& out,
    const WriteProgress& progress = {});

} // namespace mr
