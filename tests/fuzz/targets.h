// The fuzz targets: each takes any bytes, and their reader must end in a value or a Status.
//
// A target is one function, so that libFuzzer drives it (fuzz_main.cpp) and a plain test replays
// the committed inputs (tst_corpus.cpp). It aborts where an answer makes no sense: a refusal
// without words, an id outside the vocabulary, bytes outside the file.
//
// Threads  One at a time: targets keep a folder of their own.
// Files    Inputs of several files are cut at lines that hold nothing but "%%%%".

#pragma once

#include <array>
#include <string_view>

namespace mr::fuzz {

void safetensors(std::string_view bytes);      // a model's weights, or an index of shards
void gguf(std::string_view bytes);             // a GGUF file, and its values written again
void ggufFolder(std::string_view bytes);       // a GGUF file as the model that it stands for
void config(std::string_view bytes);           // config.json -> parameters, memory plan, steps
void tokenizerJson(std::string_view bytes);    // tokenizer.json, tokenizer_config.json, text
void gpt2Files(std::string_view bytes);        // vocab.json, merges.txt, tokenizer_config.json
void sentencePiece(std::string_view bytes);    // tokenizer.model
void chatTemplate(std::string_view bytes);     // Jinja; the conversations are fixed
void regex(std::string_view bytes);            // a pattern of tokenizer.json, text
void records(std::string_view bytes);          // a letter for the format, then a data file
void checkpoint(std::string_view bytes);       // state.json, state.safetensors
void manifest(std::string_view bytes);         // manifest.json of a checkpoint
void checkpointFolder(std::string_view bytes); // mutations of a checkpoint folder
void history(std::string_view bytes);          // an SQLite file
void hubList(std::string_view bytes);          // the files of a hub's repository
void trace(std::string_view bytes);            // the timeline of a step
void ollamaManifest(std::string_view bytes);   // the manifest of a model of Ollama
void parquet(std::string_view bytes);          // a Parquet file

struct Target {
    const char* name; // names its folder in corpus/ and its program
    void (*run)(std::string_view bytes);
};

inline constexpr std::array<Target, 18> kTargets = {{{"safetensors", safetensors}, {"gguf", gguf},
    {"gguf_folder", ggufFolder}, {"config", config}, {"tokenizer_json", tokenizerJson},
    {"gpt2_files", gpt2Files}, {"sentencepiece", sentencePiece}, {"chat_template", chatTemplate},
    {"regex", regex}, {"records", records}, {"checkpoint", checkpoint}, {"manifest", manifest},
    {"checkpoint_folder", checkpointFolder}, {"history", history}, {"hub_list", hubList},
    {"trace", trace}, {"ollama_manifest", ollamaManifest}, {"parquet", parquet}}};

} // namespace mr::fuzz
