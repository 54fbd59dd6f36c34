// A model written as a GGUF file, and the file asked the same questions before it gets its name.
//
// The questions are the first prompts of the run's evaluation data, or, of a model that is no run,
// fixed ones. The verdict lies beside the file as NAME.check.json.
//
// Threads  One thread; blocks on files and the device.
// Errors   Those of exportGguf() and of loading a model. A file that fails its check is no error:
// it
//          keeps ".failed" in its name.

#pragma once

#include "core/answer/export_check.h"
#include "core/save/gguf_export.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

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
    DType compute = DType::F32;
    WriteProgress progress = {};
};

struct GgufOutcome {
    std::filesystem::path file; // as it is named in the end
    GgufReport report;
    std::optional<ExportVerdict> verdict;
    std::vector<std::string> faults; // sentences; empty: the check is passed
};

// Tokens that end an answer of the model; `taught`: the chat template that came with its adapter.
Result<std::vector<TokenId>> answerEnds(const ModelPlace& place, const std::string& taught);

Result<GgufOutcome> writeCheckedGguf(const GgufRequest& request);

} // namespace mr::app
