// ModelConfig: the content of config.json, checked, in the terms the engine uses.
//
// Fields that would change the mathematics and are not understood are refused by name, never
// ignored; neutral ones (dropout 0, use_cache, ...) pass. The text as it was read is kept, so a
// saved model carries its own config unchanged.
//
// The reader resolves the features of an architecture (core/model/architecture.h): layers and
// layout ask these fields and know no names.
//
// Threads  Values.
// Errors   InvalidArgument names the file, the field, its value and the supported ones; DataCorrupt
//          for text that is not JSON.
// Source   reference: model_semantics sections 1.1 to 1.5, 1.7 to 1.11.

#pragma once

#include "core/model/block_kind.h"
#include "core/model/carried_tensors.h"
#include "core/model/rope_scaling.h"
#include "core/model/wrapper.h"

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct ModelConfig {
    std::string architecture; // "LlamaForCausalLM"
    std::string family;       // the same, or of a model within another its own
    std::string dtype;        // as written: "float32", "bfloat16"; may be empty
    std::int64_t hidden = 0;
    std::int64_t layers = 0;
    std::int64_t vocab = 0;
    std::int64_t maxPositions = 0;
    BlockKind block;               // of every block where `blocks` is empty
    std::vector<BlockKind> blocks; // (layers)
    BlockNames names;
    TensorPrefix prefix;
    bool isWrapped = false; // the text part of a model that sees or hears
    bool tieIsOpen = false; // the files say whether the head is the embedding
    std::span<const std::string_view> carries = {}; // names of carried tensors: isCarried()
    std::vector<CarriedTensor> carried;             // known once a folder is read
    std::vector<std::string> wideTensors;           // likewise: in F32, where the embedding is not
    std::vector<Rope> ropes = {{}}; // at least one; how positions turn, by BlockKind::rope
    // Blocks whose k and v later ones read, by BlockKind::sharedKeys.
    std::vector<std::int64_t> keyGivers;
    std::int64_t layerInput = 0; // columns of BlockKind::layerInput; 0: blocks have none
    std::int64_t inputVocab = 0; // rows of the table these come from
    // The table is trained, and lies with the embedding; else its rows come from the model's file.
    bool trainsInputs = false;
    // Factors of the outputs of blocks, as tensors of the files say; empty: 1.
    std::vector<float> outputScales;
    std::string_view layerScalars = {}; // the end of their names; empty: there are none
    double rmsNormEps = 0.0;
    double initializerRange = 0.02;
    bool tiedEmbedding = false;
    bool onePlusNorms = false; // NormGain::OnePlusWeight
    double embeddingScale = 1.0;
    double logitScale = 1.0;    // of the last norm's output, and so of logits
    double logitCap = 0.0;      // soft-cap of logits; 0: none
    std::int64_t bosToken = -1; // -1: none
    std::int64_t padToken = -1; // its row of the embedding is not trained by lookups; -1: none
    std::vector<std::int64_t> eosTokens;
    bool isNf4 = false; // matrices of the blocks are quantised by bitsandbytes (nf4_tensor.h)
    bool isFp8 = false; // ... or published in E4M3 (fp8_tensor.h)
    std::filesystem::path gguf;     // the file that the folder stands for; empty: it has weights
    std::string text;               // config.json as read
    std::vector<std::string> notes; // of what it asks for and is left out

    // Precondition: 0 <= index < layers.
    const BlockKind& kindOf(std::int64_t index) const noexcept
    {
        return blocks.empty() ? block : blocks[static_cast<std::size_t>(index)];
    }

    // Null for what is no block.
    const BlockKind* findKind(std::int64_t index) const noexcept
    {
        return index >= 0 && index < layers ? &kindOf(index) : nullptr;
    }

    // Each kind that a block has, once.
    std::vector<BlockKind> kinds() const;

    float outputScaleOf(std::int64_t index) const noexcept
    {
        return outputScales.empty() ? 1.0F : outputScales[static_cast<std::size_t>(index)];
    }
    // Columns of the inputs of all blocks.
    std::int64_t inputColumns() const noexcept { return layers * layerInput; }
    bool inputsAreOnHost() const noexcept { return layerInput > 0 && !trainsInputs; }

    // Elements of a head that turn.
    std::int64_t turnedColumns(const Rope& rope) const noexcept
    {
        return rope.rotaryDim > 0 ? rope.rotaryDim : block.headDim;
    }

    RopeShape shapeOf(const Rope& rope) const noexcept
    {
        return {rope.theta, turnedColumns(rope), maxPositions};
    }

    // Keys that a block with a window sees; 0: no block has one.
    std::int64_t window() const noexcept;

    // Tokens of the longest sequence the positions are made for: scaling that stretches them as
    // far as its factor says goes beyond max_position_embeddings.
    std::int64_t longestSequence() const noexcept;
};

// `source` names the text in messages ("/models/x/config.json").
Result<ModelConfig> parseModelConfig(std::string_view text, const std::string& source);

// `path` is a model folder or a config.json.
Result<ModelConfig> readModelConfig(const std::filesystem::path& path);

} // namespace mr
