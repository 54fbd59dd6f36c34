// A byte-level tokenizer.json made on the spot: the 256 bytes, a few merges, control tokens.

#pragma once

#include "core/data/data_files.h"
#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/unicode_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace mr::test {

inline std::string letterOf(unsigned char byte)
{
    std::string out;
    appendCharacter(byteLetters()[byte], out);
    return out;
}

// Ids 0 to 255 are the bytes; then " m", "il", "le", " mil", "th", "ill" by merges of the ranks 0
// to 5; then <s>, </s>, <|end|> (special) and <think> (not).
inline nlohmann::json smallBpe()
{
    nlohmann::json vocab = nlohmann::json::object();
    nlohmann::json merges = nlohmann::json::array();
    for (int byte = 0; byte < 256; ++byte)
        vocab[letterOf(static_cast<unsigned char>(byte))] = byte;
    int next = 256;
    const std::string space = letterOf(' ');
    const std::vector<std::pair<std::string, std::string>> pairs = {
        {space, "m"}, {"i", "l"}, {"l", "e"}, {space + "m", "il"}, {"t", "h"}, {"il", "l"}};
    for (const auto& [left, right] : pairs) {
        vocab[left + right] = next++;
        merges.push_back(left + " " + right);
    }
    nlohmann::json out = nlohmann::json::parse(R"({"added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "decoder": {"type": "ByteLevel"}, "post_processor": null, "model": {"type": "BPE"}})");
    for (const std::string text : {"<s>", "</s>", "<|end|>", "<think>"}) {
        nlohmann::json token;
        token["id"] = next++;
        token["content"] = text;
        token["special"] = text != "<think>";
        token["normalized"] = false;
        out["added_tokens"].push_back(token);
    }
    out["model"]["vocab"] = vocab;
    out["model"]["merges"] = merges;
    return out;
}

constexpr int kSmallBpeBos = 262;
constexpr int kSmallBpeEos = 263;
constexpr int kSmallBpeEnd = 264;
constexpr int kSmallBpeThink = 265;

inline void writeSmallBpe(const Folder& folder, const nlohmann::json& content = smallBpe())
{
    folder.write("tokenizer.json", content.dump());
    folder.write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true})");
}

} // namespace mr::test
