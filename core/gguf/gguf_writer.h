// writeGguf: a GGUF file, version 3, that appears under its name when it is complete.
//
// Threads  One thread.
// Errors   InvalidArgument for a value or a tensor that the format cannot hold; Io; whatever `fill`
//          or `progress` answers. Nothing is left behind then.
// Source   reference: export section 2.

#pragma once

#include "core/base/write_progress.h"
#include "core/gguf/gguf_type.h"
#include "core/gguf/gguf_value.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace mr {

// One tensor to be written. `fill` is asked for its elements in order, whole rows at a time: as
// many as fit into some MiB, or one row. The writer encodes them.
struct GgufSource {
    std::string name;
    std::vector<std::int64_t> ne; // 1 to 4, the fastest first: a matrix is {columns, rows}
    GgufType type = GgufType::F32;
    std::function<Status(std::int64_t first, std::span<float> out)> fill;
};

// Temporary file, fsync, rename. The alignment is 32, or what the value general.alignment says.
// `progress` is told the bytes of tensors.
Status writeGguf(const std::filesystem::path& file, const GgufValues& values,
    const std::vector<GgufSource>& tensors, const WriteProgress& progress = {});

} // namespace mr
