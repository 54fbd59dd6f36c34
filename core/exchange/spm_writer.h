// SentencePiece's tokenizer.model, made of a list of pieces.
//
// Threads  Pure functions.
// Source   sentencepiece_model.proto of SentencePiece 0.1.97.

#pragma once

#include "core/tokenizer/spm_model.h"

#include <span>
#include <string>

namespace mr {

struct SpmSettings {
    bool addDummyPrefix = true;
    std::string bos; // pieces; empty: none
    std::string eos;
};

// A BPE model that merges by score, normalises nothing and keeps every space.
std::string writeSpmModel(std::span<const SpmModel::Piece> pieces, const SpmSettings& settings);

} // namespace mr
