// The Modelfile that Ollama makes a model of: the GGUF file beside it, the template, the texts that
// end an answer, and the way of sampling that the model's publisher recommends.
//
// Threads  Functions of their arguments; modelfileSampling() reads a small file.
// Errors   InvalidArgument: generation_config.json is no JSON object.
// Source   reference: export section 8; docs/modelfile.md of Ollama.

#pragma once

#include <millrace/status.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mr {

struct Modelfile {
    std::string weights;                                         // "./model.gguf"
    std::string chatTemplate;                                    // of Go; empty: none is written
    std::vector<std::string> stops;                              // texts that end an answer
    std::vector<std::pair<std::string, std::string>> parameters; // name and value

    // InvalidArgument: the template has three quotes in a row, which the format cannot hold.
    Result<std::string> text() const;
};

// temperature, top_p, top_k, min_p and repeat_penalty, as far as generation_config.json says them.
Result<std::vector<std::pair<std::string, std::string>>> modelfileSampling(
    const std::filesystem::path& folder);

} // namespace mr
