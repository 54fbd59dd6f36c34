// Small SentencePiece models, trained on the spot from fixed text, so that tests need no files.

#pragma once

#include "core/data/data_files.h"

#include <sentencepiece_trainer.h>

namespace mr::test {

// Writes FOLDER/tokenizer.model. `flags` are spm_train's, added to the ones below.
inline void trainTokenizer(const Folder& folder,
    const std::string& flags =
        "--model_type=bpe "
        "--byte_fallback=true --normalization_rule_name=identity --remove_extra_whitespaces=false")
{
    std::string corpus;
    for (int i = 0; i < 200; ++i) {
        const std::string n = std::to_string(i);
        corpus += "The miller counts " + n + " sacks of flour and " + n + " turns of the wheel.\n";
        corpus += "  Water runs to the mill; question " + n + "? answer " + n + "!\n";
    }
    const std::string input = folder.write("corpus.txt", corpus);
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        "--input=" + input + " --model_prefix=" + folder.path("tokenizer") +
        " --vocab_size=340 --hard_vocab_limit=false --num_threads=1 --minloglevel=2 " + flags);
    if (!status.ok())
        qFatal("training a test tokenizer failed: %s", status.error_message());
}

} // namespace mr::test
