// Fields of each model family, defaults of missing ones, and refusals by name.

#include "core/model/config_texts.h"
#include "support/test_room.h"

#include <QTest>

#include <cmath>

namespace mr::test::tst_family_fields {

namespace {

bool isWindowed(const ModelConfig& config, std::int64_t block)
{
    const BlockKind* kind = config.findKind(block);
    return kind != nullptr && kind->window > 0;
}

} // namespace

class TestFamilyFields : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void anArchitectureImpliesWhatItsConfigDoesNotSay()
    {
        const ModelConfig qwen2 = family("Qwen2ForCausalLM", "qwen2");
        QVERIFY(qwen2.block.qkvBias && !qwen2.block.attnOutBias && !qwen2.block.mlpBias &&
                !qwen2.block.normsQueries());
        QCOMPARE(qwen2.window(), 0);
        const ModelConfig qwen3 = family("Qwen3ForCausalLM", "qwen3");
        QVERIFY(qwen3.block.queryKeyNorm == QueryKeyNorm::Heads && !qwen3.block.qkvBias);
        QCOMPARE(qwen3.block.headDim, 128);
        QVERIFY(family("Qwen3ForCausalLM", "qwen3", R"("attention_bias": true)").block.attnOutBias);
        const ModelConfig mistral = family("MistralForCausalLM", "mistral");
        QCOMPARE(mistral.window(), 4096);
        QVERIFY(isWindowed(mistral, 0) && isWindowed(mistral, 1) && !isWindowed(mistral, 2));
        QVERIFY(family("Phi3ForCausalLM", "phi3").names.qkv == "qkv_proj");
        // Null is an answer: no window.
        QCOMPARE(family("MistralForCausalLM", "mistral", R"("sliding_window": null)").window(), 0);
    }

    void missingHeadsOfKeysAreThoseOfTheClass()
    {
        const auto without = [](const char* name, const char* type, int heads) {
            std::string text = familyConfig(name, type, "");
            text.replace(text.find("\"num_attention_heads\":2"), 23,
                "\"head_dim\":4,\"num_attention_heads\":" + std::to_string(heads));
            return text.erase(text.find("\"num_key_value_heads\":2,"), 24);
        };
        QCOMPARE(config(without("MistralForCausalLM", "mistral", 16)).block.kvHeads, 8);
        QCOMPARE(config(without("Gemma2ForCausalLM", "gemma2", 8)).block.kvHeads, 4);
        QCOMPARE(config(without("Phi3ForCausalLM", "phi3", 6)).block.kvHeads, 6);
        QVERIFY(has(refusal(without("Qwen2ForCausalLM", "qwen2", 14)), "num_key_value_heads"));
    }

    void paddingIsTheTokenThatIsNamedOrThatOfTheClass()
    {
        QCOMPARE(config(tinyConfig()).padToken, -1);
        QCOMPARE(config(added("\"pad_token_id\": 4")).padToken, 4);
        for (const char* none :
            {"null", "17", "-18", "18446744073709551615", "-9223372036854775808"})
            QCOMPARE(config(added("\"pad_token_id\": " + std::string(none))).padToken, -1);
        QCOMPARE(config(added("\"pad_token_id\": -1")).padToken, 16); // torch counts from the end
        QCOMPARE(config(added("\"pad_token_id\": -17")).padToken, 0);
        QCOMPARE(family("GemmaForCausalLM", "gemma").padToken, 0);
        QCOMPARE(family("GemmaForCausalLM", "gemma", R"("pad_token_id": null)").padToken, -1);
        QCOMPARE(family("Phi3ForCausalLM", "phi3").padToken, -1); // 32000, of which it has no row
    }

    void listsOfLayersThatContradictTheWindowOfAllAreRefused()
    {
        const auto mistral = [](const char* window, const char* types) {
            return familyConfig("MistralForCausalLM", "mistral",
                std::string("\"sliding_window\": ") + window + ", \"layer_types\": " + types);
        };
        const char* mixed = R"(["sliding_attention", "full_attention"])";
        const char* full = R"(["full_attention", "full_attention"])";
        const char* sliding = R"(["sliding_attention", "sliding_attention"])";

        QVERIFY(has(refusal(mistral("4", mixed)), "layer_types"));
        QVERIFY(has(refusal(mistral("4", full)), "layer_types"));
        QVERIFY(has(refusal(mistral("null", sliding)), "layer_types"));
        QCOMPARE(config(mistral("4", sliding)).window(), 4);
        QCOMPARE(config(mistral("null", full)).window(), 0);
    }

    void windowsFollowTheRuleOfTheFamilyOrTheListOfLayers()
    {
        const std::string on = R"("use_sliding_window": true, "sliding_window": 6, )";
        const ModelConfig upper =
            family("Qwen2ForCausalLM", "qwen2", on + R"("max_window_layers": 1)");
        QCOMPARE(upper.window(), 6);
        QVERIFY(!isWindowed(upper, 0) && isWindowed(upper, 1));
        const ModelConfig listed = family("Qwen3ForCausalLM", "qwen3",
            on + R"("layer_types": ["sliding_attention", "full_attention"])");
        QVERIFY(isWindowed(listed, 0) && !isWindowed(listed, 1) && !isWindowed(listed, -1));
        QCOMPARE(family("Qwen2ForCausalLM", "qwen2", R"("sliding_window": 6)").window(), 0);
        const auto fault = [&](const char* fields) {
            return refusal(familyConfig("Qwen3ForCausalLM", "qwen3", fields));
        };
        QVERIFY(has(fault(R"("layer_types": ["sliding_attention", "full_attention"])"),
            "no sliding_window"));
        QVERIFY(has(fault(R"("layer_types": ["full_attention"])"), "layer_types"));
        QVERIFY(has(
            fault(R"("layer_types": ["linear_attention", "full_attention"])"), "linear_attention"));
        QVERIFY(
            has(refusal(familyConfig("MistralForCausalLM", "mistral", R"("attention_bias": true)")),
                "attention_bias"));
    }

    void phi3HasItsLengthAtTheTopAndItsOwnCodeReplaced()
    {
        const ModelConfig c = family("Phi3ForCausalLM", "phi3",
            R"("original_max_position_embeddings": 8, "auto_map": {"AutoConfig": "x"},
               "rope_scaling": {"type": "su", "short_factor": [1, 1], "long_factor": [2, 3]})");

        QVERIFY(c.ropes.front().scaling.type == RopeType::LongRope);
        QCOMPARE(c.ropes.front().scaling.originalPositions, 8.0);
        QCOMPARE(c.ropes.front().scaling.longFactors, (std::vector<float>{2.0F, 3.0F}));
        const std::string factors = R"("short_factor": [1, 1], "long_factor": [2, 3])";
        const ModelConfig silent = family(
            "Phi3ForCausalLM", "phi3", R"("rope_scaling": {"type": "longrope", )" + factors + "}");
        QCOMPARE(silent.ropes.front().scaling.originalPositions, 4096.0);
        QVERIFY(has(refusal(familyConfig("Phi3ForCausalLM", "phi3",
                        R"("original_max_position_embeddings": 8, "rope_scaling": {"type": "su",
                           "original_max_position_embeddings": 9, )" +
                            factors + "}")),
            "original_max_position_embeddings"));
    }

    void phi3WithItsLengthOnlyWithinTheScalingIsRefused()
    {
        const auto fields = [](const std::string& key, const std::string& length) {
            const std::string scaling = R"({"rope_type": "longrope", "rope_theta": 1e4,
                "short_factor": [1, 1], "long_factor": [2, 3],
                "original_max_position_embeddings": )";
            return "\"" + key + "\": " + scaling + length + "}";
        };
        for (const char* key : {"rope_scaling", "rope_parameters"}) {
            const std::string message =
                refusal(familyConfig("Phi3ForCausalLM", "phi3", fields(key, "8")));
            QVERIFY2(has(message, "original_max_position_embeddings"), message.c_str());
            QVERIFY2(has(message, "write it beside"), message.c_str());
            // A length equal to that of the class leaves nothing open.
            QCOMPARE(family("Phi3ForCausalLM", "phi3", fields(key, "4096"))
                         .ropes.front()
                         .scaling.originalPositions,
                4096.0);
        }
    }

    void gemmaSaysLittleAndMeansMuch()
    {
        const ModelConfig c = family("GemmaForCausalLM", "gemma", R"("hidden_act": "gelu")");

        QVERIFY(c.tiedEmbedding && c.block.geluGate && c.onePlusNorms && !c.block.branchNorms);
        QCOMPARE(c.block.headDim, 256);
        QCOMPARE(c.embeddingScale, std::sqrt(8.0));
        QVERIFY(c.window() == 0 && c.block.scoreScale == 0.0 && c.block.attentionCap == 0.0 &&
                c.logitCap == 0.0);
        QVERIFY(family("GemmaForCausalLM", "gemma", R"("attention_bias": true)").block.attnOutBias);
        QVERIFY(
            !family("GemmaForCausalLM", "gemma", R"("tie_word_embeddings": false)").tiedEmbedding);
    }

    void gemma2HasItsCapsUnlessTheyAreNull()
    {
        const ModelConfig c = family("Gemma2ForCausalLM", "gemma2");
        QVERIFY(
            c.block.attentionCap == 50.0 && c.logitCap == 30.0 && c.block.scoreScale == 1.0 / 16.0);
        QVERIFY(c.block.branchNorms && c.window() == 4096 && isWindowed(c, 0) && !isWindowed(c, 1));
        const ModelConfig own = family("Gemma2ForCausalLM", "gemma2",
            R"("attn_logit_softcapping": null, "final_logit_softcapping": 7.5,
               "query_pre_attn_scalar": 144, "sliding_window": 9, "sliding_window_size": 9, "cache_implementation": "hybrid",
               "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
               "layer_types": ["full_attention", "sliding_attention"])");

        QVERIFY(own.block.attentionCap == 0.0 && own.logitCap == 7.5 &&
                own.block.scoreScale == 1.0 / 12.0);
        QVERIFY(own.window() == 9 && !isWindowed(own, 0) && isWindowed(own, 1));
    }

    void gemma3TurnsWindowedLayersByABaseOfTheirOwn()
    {
        const ModelConfig c = family("Gemma3ForCausalLM", "gemma3_text");
        QVERIFY(c.ropes.front().theta == 1e6 && c.ropes.back().theta == 1e4 &&
                c.block.queryKeyNorm == QueryKeyNorm::Heads);
        QVERIFY(c.block.attentionCap == 0.0 && c.logitCap == 0.0);
        QVERIFY(isWindowed(c, 0) && isWindowed(c, 1)); // the sixth of six sees everything
        const ModelConfig older = family("Gemma3ForCausalLM", "gemma3_text",
            R"("sliding_window_pattern": 2, "rope_local_base_freq": 5e3, "rope_theta": 2e6,
               "rope_scaling": {"rope_type": "linear", "factor": 8.0})");
        QVERIFY(isWindowed(older, 0) && !isWindowed(older, 1));
        const ModelConfig newer = family("Gemma3ForCausalLM", "gemma3_text",
            R"("layer_types": ["sliding_attention", "full_attention"],
               "_sliding_window_pattern": 2, "rope_parameters": {
                 "full_attention": {"rope_theta": 2e6, "rope_type": "linear", "factor": 8.0},
                 "sliding_attention": {"rope_theta": 5e3, "rope_type": "default"}})");

        for (const ModelConfig& each : {older, newer}) {
            QVERIFY(each.ropes[0].theta == 2e6 && each.ropes[1].theta == 5e3);
            QVERIFY(each.ropes[0].scaling.type == RopeType::Linear &&
                    each.ropes[0].scaling.factor == 8.0);
        }
    }

    void gemmaFieldsThatAreNotUnderstoodAreRefusedByName()
    {
        const std::pair<const char*, const char*> cases[] = {
            {"hidden_activation", R"("hidden_activation": "gelu")"},
            {"hidden_act", R"("hidden_act": "silu")"},
            {"final_logit_softcapping", R"("final_logit_softcapping": 0)"},
            {"attn_logit_softcapping", R"("attn_logit_softcapping": 50.0)"},
            {"query_pre_attn_scalar", R"("query_pre_attn_scalar": -1)"},
            {"sliding_window", R"("sliding_window": null)"},
            {"sliding_window_size", R"("sliding_window_size": 7)"},
            {"use_bidirectional_attention", R"("use_bidirectional_attention": true)"},
            {"rope_local_base_freq", R"("rope_local_base_freq": 0)"},
            {"sliding_window_pattern", R"("sliding_window_pattern": 0)"},
            {"full_attention",
                R"("rope_parameters": {"rope_type": "default", "rope_theta": 50.0})"},
            {"sliding_attention", R"("rope_parameters": {"sliding_attention":
                {"rope_type": "linear", "factor": 2.0}})"},
            {"chunked", R"("rope_parameters": {"full_attention": {}, "chunked": {"a": 1}})"}};
        for (const auto& [name, fields] : cases)
            QVERIFY2(has(refusal(familyConfig("Gemma3ForCausalLM", "gemma3_text", fields)), name),
                fields);
        QVERIFY(has(
            refusal(familyConfig("Gemma2ForCausalLM", "gemma2", R"("sliding_window_pattern": 3)")),
            "sliding_window_pattern"));
        const std::string pictures =
            refusal(familyConfig("PaliGemmaForConditionalGeneration", "paligemma", ""));
        QVERIFY(has(pictures, "PaliGemmaForConditionalGeneration") && has(pictures, "pictures"));
    }

    void phi4TurnsAPartOfEachHead()
    {
        const auto fields = [](const char* share) {
            return R"("full_attn_mod": 1, "interpolate_factor": 1, "head_dim": 16, "partial_rotary_factor": )" +
                   std::string(share);
        };
        const ModelConfig c = family("Phi3ForCausalLM", "phi3", fields("0.75"));
        QVERIFY(c.ropes.front().rotaryDim == 12 && c.shapeOf(c.ropes.front()).rotaryDim == 12);
        QCOMPARE(family("Phi3ForCausalLM", "phi3", fields("1.0")).ropes[0].rotaryDim, 0);
        const ModelConfig newer = family("Phi3ForCausalLM", "phi3",
            R"("head_dim": 16, "original_max_position_embeddings": 8,
               "rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4,
               "original_max_position_embeddings": 8, "partial_rotary_factor": 0.25,
               "short_factor": [1, 1], "long_factor": [2, 3]})");
        QVERIFY(newer.ropes[0].rotaryDim == 4 && newer.ropes[0].scaling.type == RopeType::LongRope);

        for (const char* share : {"0.2", "0.01", "1.5", "-1", "0"})
            QVERIFY2(has(refusal(familyConfig("Phi3ForCausalLM", "phi3", fields(share))),
                         "partial_rotary_factor"),
                share);
        QVERIFY(has(refusal(familyConfig("Phi3ForCausalLM", "phi3",
                        fields("0.5") + R"(, "rope_parameters": {"partial_rotary_factor": 0.25})")),
            "partial_rotary_factor"));
        QVERIFY(has(refusal(familyConfig("Qwen3ForCausalLM", "qwen3",
                        R"("rope_parameters": {"partial_rotary_factor": 0.5})")),
            "partial_rotary_factor"));
    }
};

MR_TEST(TestFamilyFields)

} // namespace mr::test::tst_family_fields

#include "tst_family_fields.moc"
