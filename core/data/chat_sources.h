// Chat templates of a model's folder: their sources, and the special tokens that they name.
//
// Threads  Functions of their arguments; they read small files.
// Errors   InvalidArgument names the file and the fault in it.

#pragma once

#include <millrace/status.h>

#include <filesystem>
#include <map>
#include <string>

namespace mr {

// Sources by name: "default", perhaps "tool_use". From chat_template.jinja, else
// chat_template.json, else tokenizer_config.json. Empty: there are none.
using TemplateSources = std::map<std::string, std::string>;
Result<TemplateSources> readTemplateSources(const std::filesystem::path& modelFolder);

// "bos_token" -> "<s>" and so on, as transformers (5.23) hands them to a template: the usual seven
// and every other name that ends in "_token" in tokenizer_config.json, its "extra_special_tokens",
// and special_tokens_map.json, which wins where both have a name. That file is not read where
// tokenizer_config.json has an "added_tokens_decoder". A name that is null is not there.
std::map<std::string, std::string> readTemplateTokens(const std::filesystem::path& modelFolder);

// Whether the model may have learned to answer "/no_think" in a question without thinking, which
// no template needs to know for that: Qwen 3, and every model whose config.json does not name its
// family.
bool mayReadNoThink(const std::filesystem::path& modelFolder);

} // namespace mr
