// A model written as a GGUF file, and the file asked the same questions before it gets its name.
//
// Before it is written, the memory that the questions need is compared with what is free
// (core/answer/asking_choice.h). The verdict lies beside the file as NAME.check.json.
//
// Threads  One thread; blocks on files and the device. `progress` is called by it, between the
//          questions with all bytes of the file.
// Errors   Those of exportGguf() and of loading a model; nothing is left behind then. A file that
//          fails its check is no error: it keeps ".failed" in its name. Nor is one for which there
//          is no memory to ask it: a note says so.

#pragma once

#include "core/answer/export_check.h"
#include "core/save/gguf_export.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mr::app {

struct GgufRequest {
    std::string model; // run, checkpoint, adapter or model
    std::string adapter = {};
    std::filesystem::path out;
    std::optional<GgufForm> form = {};
    bool original = false;
    bool asks = true; // false: weights are compared, nothing is asked
    DeviceChoice device = DeviceChoice::Auto;
    std::int64_t threads = 0;
    std::uint64_t memoryBytes = 0; // for the questions; 0: what is free
    WriteProgress progress = {};
};

struct GgufOutcome {
    std::filesystem::path file; // as it is named in the end
    GgufReport report;
    std::optional<ExportVerdict> verdict; // empty: it was not asked
    PrecisionChoice askedIn = PrecisionChoice::F32;
    std::vector<std::string> faults; // sentences; empty: the check is passed
};

// Tokens that end an answer of the model; `taught`: the chat template that came with its adapter.
Result<std::vector<TokenId>> answerEnds(const ModelPlace& place, const std::string& taught);

Result<GgufOutcome> writeCheckedGguf(const GgufRequest& request);

} // namespace mr::app
