// A file with the frozen blocks of a model as a run holds them: converted, or packed to 4 bits.
//
// It is made once, kept beside the scratch files and shared by all runs that hold the model alike.
// Its folder's name has the hash of what it was made from, so a model that has changed gets another
// one. The file is safetensors: a tensor of bytes for each block, then the hash of them, which is
// compared whenever a run opens the file.
//
// Threads  One thread; blocks on files, for as long as writing or reading them all takes.
// Errors   Those of the reader; InvalidArgument: another program prepares the file; OutOfMemory: it
//          does not fit the disk; Io; Cancelled.
// Units    Bytes.

#pragma once

#include "core/model/base_files.h"
#include "core/model/master.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace mr {

struct PreparedBaseSpec {
    const ParamTable& trained;
    DType compute = DType::BF16;
    std::filesystem::path folder; // that has the folder of the file
    std::string source = {};      // names the weights: weightStamp()
    // All of the model, asked only where the file is to be made. The reader ends before the table.
    std::function<Result<std::unique_ptr<MasterReader>>()> open = {};
    // Says how far making or comparing the file is, of `all` bytes.
    std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
    std::function<bool()> cancelled = {};
};

// Bytes of the blocks in the file.
std::uint64_t preparedBytes(const ParamTable& trained, DType compute);

// Finds the file, or makes it.
Result<BaseFiles> preparedBase(const PreparedBaseSpec& spec);

} // namespace mr
