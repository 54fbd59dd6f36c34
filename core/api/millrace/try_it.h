// Trying a model: prompts and answers.
//
// A model folder and a run that goes on (Session::ask) take the same prompt and seed. An answer of
// a run comes out through the run store (RunReader::answers).
//
// Threads  Values.
// Units    In the field names.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace mr {

// How a prompt reaches the model.
enum class PromptForm : std::uint8_t {
    Text,      // as it is
    Chat,      // through the model's chat template; refused where it has none
    ChatIfAny, // as Chat, or else as the prompts of training pairs: closed by a line feed
};

struct Prompt {
    std::string text;
    std::string system; // before it; not with PromptForm::Text
    PromptForm form = PromptForm::ChatIfAny;
    std::int64_t maxTokens = 256;
    double temperature = 1.0; // 0: always the most likely token
    double topP = 1.0;        // the smallest set of tokens with this share of the probability
    std::uint64_t seed = 1;
};

struct Answer {
    std::string read; // the text that the model read, control tokens as they are written
    bool byTemplate = false;
    std::string text;
    std::int64_t promptTokens = 0;
    std::int64_t tokens = 0; // in the answer, its end not counted
    bool ended = false;      // by an end token: neither the limit nor a stop
    double seconds = 0.0;    // from the first token of the prompt to the last of the answer
};

// An answer, seen while it comes. Called by the thread that asks; either may be empty.
struct AnswerWatch {
    std::function<void(const Answer& begun)> onRead;
    std::function<bool(std::string_view piece)> onText; // false stops
};

} // namespace mr
