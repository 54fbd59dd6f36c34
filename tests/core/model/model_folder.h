// Small model folders written by the tests themselves, and the shared ones where present.

#pragma once

#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/model/weights.h"
#include "support/master_buffers.h"
#include "support/shared_data.h"

#include <QTemporaryDir>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mr::test {

inline std::string contents(const std::filesystem::path& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void put(const std::filesystem::path& file, const std::string& bytes)
{
    std::ofstream out(file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline bool has(const std::string& message, std::string_view part)
{
    return message.find(part) != std::string::npos;
}

// Header length, header, data: nothing is checked.
inline std::string rawSafetensors(const std::string& header, const std::string& data)
{
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header + data;
}

struct RawTensor {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::string bytes;
};

inline std::string safetensors(const std::map<std::string, RawTensor>& tensors)
{
    std::string header = "{";
    std::string data;
    for (const auto& [name, t] : tensors) {
        std::string shape;
        for (const auto n : t.shape)
            shape.append(shape.empty() ? "" : ",").append(std::to_string(n));
        header.append(header.size() > 1 ? ",\"" : "\"").append(name);
        header.append("\":{\"dtype\":\"").append(t.dtype);
        header.append("\",\"shape\":[").append(shape).append("],\"data_offsets\":[");
        header.append(std::to_string(data.size())).append(",");
        header.append(std::to_string(data.size() + t.bytes.size())).append("]}");
        data += t.bytes;
    }
    return rawSafetensors(header + "}", data);
}

// GQA, head_dim that is not hidden / heads, biases everywhere, untied unless asked.
inline std::string tinyConfig(bool tied = false)
{
    return std::string(R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 12,
  "intermediate_size": 10,
  "num_hidden_layers": 2,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "head_dim": 6,
  "vocab_size": 17,
  "max_position_embeddings": 32,
  "rms_norm_eps": 1e-05,
  "attention_bias": true,
  "mlp_bias": true,
  "torch_dtype": "float32",
  "tie_word_embeddings": )") +
           (tied ? "true" : "false") + "\n}\n";
}

inline ModelConfig config(const std::string& text)
{
    return parseModelConfig(text, "config.json").value();
}

// A tensor of the file format for every tensor of the table; values are exact in every dtype.
inline std::map<std::string, RawTensor> tinyTensors(const ParamTable& table)
{
    std::map<std::string, RawTensor> out;
    float value = -3.0F;
    for (const NamedTensor& t : table.tensors) {
        RawTensor raw{"F32", t.shape, {}};
        for (std::int64_t i = 0; i < t.count(); ++i) {
            value = value > 3.0F ? -3.0F : value + 0.0625F;
            raw.bytes.append(reinterpret_cast<const char*>(&value), 4);
        }
        out[t.name] = raw;
    }
    return out;
}

} // namespace mr::test
