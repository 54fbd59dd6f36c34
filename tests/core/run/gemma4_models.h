// Configs of small Gemma 4 models, as changes to that of RunRig.

#pragma once

#include <nlohmann/json.hpp>

namespace mr::test {

// Gemma 4: heads of two lengths, and v that is k.
inline nlohmann::json keysAsValuesConfig()
{
    return {{"architectures", {"Gemma4ForCausalLM"}}, {"model_type", "gemma4_text"},
        {"num_hidden_layers", 3}, {"sliding_window", 5}, {"head_dim", 8}, {"global_head_dim", 12},
        {"layer_types", {"full_attention", "sliding_attention", "full_attention"}},
        {"attention_k_eq_v", true}, {"num_global_key_value_heads", 1},
        {"hidden_size_per_layer_input", 0}, {"initializer_range", 0.2}};
}

// The smaller ones: k and v of other blocks, a wider MLP there, and inputs of each block.
inline nlohmann::json inputsConfig()
{
    nlohmann::json config = keysAsValuesConfig();
    config.update({{"num_hidden_layers", 4}, {"attention_k_eq_v", false},
        {"layer_types",
            {"sliding_attention", "full_attention", "sliding_attention", "full_attention"}},
        {"num_kv_shared_layers", 2}, {"use_double_wide_mlp", true},
        {"hidden_size_per_layer_input", 6}});
    return config;
}

} // namespace mr::test
