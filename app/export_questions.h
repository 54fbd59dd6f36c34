// Questions to a model that is exported, and the precision in which it is asked by the memory that
// is free.
//
// The questions are the first prompts of the run's evaluation data, or, of a model that is no run,
// fixed ones.
//
// Threads  One thread; blocks on files and where the card is looked for.
// Errors   Those of config, tokenizer and adapter; a card that is asked for and is not there.
// Units    Bytes.

#pragma once

#include "core/answer/asking_choice.h"
#include "core/answer/export_check.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <cstdint>
#include <string>

namespace mr::app {

struct AskingRequest {
    std::string path;      // of the run, or what else is exported
    CheckedModel original; // that it stands for
    DeviceChoice device = DeviceChoice::Auto;
    std::int64_t threads = 0;
    std::uint64_t memoryBytes = 0; // for the questions; 0: what is free
};

struct Asking {
    AskingChoice choice;
    CheckQuestions questions; // in the precision of the choice
};

// Loads no weights.
Result<Asking> prepareAsking(const AskingRequest& request);

} // namespace mr::app
