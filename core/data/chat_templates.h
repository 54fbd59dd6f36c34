// Chat templates that teach a model without one to chat.
//
// A base model that is trained on conversations learns the form they are written in, so any form
// will do as long as it is the one the model is asked with later: the text of the template is saved
// with the trained model as chat_template.jinja.
//
// The end of an answer must be right: generation stops at a single token. The built-in templates
// end an answer with their own mark (<|im_end|>, <|eot_id|>) where the tokenizer has it as one
// token, and with the tokenizer's end of text where it has not; the other marks may well be plain
// text of several tokens. They begin with the tokenizer's begin of text where it adds one by
// itself, for nothing else is added to a template's text.
// They write everything that a conversation may hold: tools as a turn of the system, calls between
// <tool_call> and </tool_call>, reasoning between <think> and </think>.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument: an unknown name, a file that cannot be read.

#pragma once

#include "core/tokenizer/tokenizer.h"

#include <millrace/run_spec.h>
#include <millrace/status.h>

#include <string>
#include <string_view>

namespace mr {

// "chatml", "llama3"; "own" for a file or a text; empty for nothing.
std::string_view templateName(std::string_view choice) noexcept;

// The text of `choice`: a name, the path of a file, or the text of a template already.
Result<std::string> templateText(const std::string& choice, const Tokenizer& tokenizer);

// A file is taken into the source as its text: a run that is resumed does not need the file again.
// Unknown names are refused.
Status settleTemplate(DataSource& source);

} // namespace mr
