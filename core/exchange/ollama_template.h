// A chat template as Ollama writes it (text/template of Go), learned from the model's own.
//
// Conversations are rendered by the template of the model. What stands before each message then
// says how a turn of each role begins. Where other conversations do not come out as they should,
// there is no such template: newer versions of Ollama run the one within the GGUF file instead.
//
// Threads  Pure functions.
// Errors   Those of the template that is learned from.
// Source   reference: export section 8; docs/template.md of Ollama.

#pragma once

#include "core/data/chat_format.h"

#include <millrace/status.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace mr {

// Texts before the messages of a conversation in which questions and answers alternate.
struct OllamaTemplate {
    bool takesSystem = false;
    std::string system;          // before a system text, which comes first
    std::string firstUser;       // before the first question without one
    std::string userAfterSystem; // ... and with one
    std::string user;            // before a further question
    std::string assistant;       // before an answer
    std::string ending;          // behind the last question: the answer follows

    // The template of Go.
    std::string text() const;
    // The messages as Ollama writes them.
    std::string render(const nlohmann::ordered_json& messages) const;
};

// Nothing: the model's template is no such row of texts. `bos` is left out at the begin, because
// the tokenizer adds it.
Result<std::optional<OllamaTemplate>> learnOllamaTemplate(
    const ChatFormat& format, std::string_view bos);

} // namespace mr
