// A folder that Ollama makes a model of: the GGUF file, checked as writeCheckedGguf() does, and a
// Modelfile.
//
// Threads  One thread; blocks on files and the device.
// Errors   Those of writeCheckedGguf(); `out` is there already. A folder whose file failed its
//          check has ".failed" behind its name.

#pragma once

#include "app/gguf_export.h"
#include "core/exchange/modelfile.h"

namespace mr::app {

struct OllamaOutcome {
    GgufOutcome file; // its `file` is the folder as it is named in the end
    Modelfile modelfile;
    std::filesystem::path weights; // in the folder
};

// `request.out` is the folder. The report's notes say what the Modelfile lacks.
Result<OllamaOutcome> writeOllamaFolder(const GgufRequest& request);

} // namespace mr::app
