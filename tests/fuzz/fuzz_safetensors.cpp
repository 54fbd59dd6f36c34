#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <cstring>

namespace mr::fuzz {
namespace {

constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
  "num_key_value_heads": 1, "vocab_size": 3, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true})";

// One tensor of two numbers.
std::string smallShard()
{
    const std::string header =
        R"({"model.norm.weight":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header + "\x80\x3F\x80\x3F";
}

void readTensors(const std::filesystem::path& file, std::size_t fileBytes)
{
    constexpr std::uint64_t kMostBytes = 1 << 16;
    Result<SafetensorsReader> reader = SafetensorsReader::open(file);
    if (!check(reader))
        return;
    for (const auto& [name, entry] : reader.value().entries()) {
        require(entry.begin <= entry.end && entry.end <= fileBytes, "bytes outside the file");
        const std::uint64_t bytes = entry.end - entry.begin;
        std::vector<std::byte> out(std::min(bytes, kMostBytes));
        require(reader.value().readBytes(name, bytes - out.size(), out).ok(), "unreadable bytes");
        std::vector<float> floats(3);
        (void)check(reader.value().readFloats(name, 0, floats));
    }
}

} // namespace

void safetensors(std::string_view bytes)
{
    static const FuzzFolder folder;
    static const std::string shard = smallShard();
    static const ModelConfig config = parseModelConfig(kConfig, "config.json").value();
    static const ParamTable table = buildParamTable(config);
    // Text is the index of shards, of which one is there.
    if (bytes.starts_with('{')) {
        folder.remove("model.safetensors");
        folder.write("model-00001-of-00001.safetensors", shard);
        folder.write("model.safetensors.index.json", bytes);
    } else {
        folder.remove("model.safetensors.index.json");
        readTensors(folder.write("model.safetensors", bytes), bytes.size());
    }
    (void)check(findWeights(folder.path(), config, table));
}

} // namespace mr::fuzz
