// config.json: published ones, both spellings, and every refusal with the field it names.

#include "model_folder.h"

#include <QTest>

#include <cmath>

using namespace mr;
using namespace mr::test;

namespace {

// tinyConfig with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to)
{
    std::string text = tinyConfig();
    const std::size_t at = text.find(from);
    return at == std::string::npos ? "not found: " + from : text.replace(at, from.size(), to);
}

std::string added(const std::string& field)
{
    return changed("\"model_type\"", field + ",\n \"model_type\"");
}

std::string refusal(const std::string& text)
{
    return parseModelConfig(text, "/m/config.json").status().message();
}

// Two layers, two heads of four.
std::string familyConfig(const char* name, const char* type, const std::string& fields)
{
    return std::string(R"({"architectures":[")") + name + R"("],"model_type":")" + type +
           R"(","hidden_size":8,"intermediate_size":4,"num_hidden_layers":2,
            "num_attention_heads":2,"vocab_size":5,"max_position_embeddings":16,
            "rms_norm_eps":1e-6)" +
           (fields.empty() ? "" : "," + fields) + "}";
}

ModelConfig family(const char* name, const char* type, const std::string& fields = "")
{
    return config(familyConfig(name, type, fields));
}

void checkParameters(const std::string& file, std::int64_t expected)
{
    Result<ModelConfig> c = readModelConfig(sharedData() / "configs" / file);
    QVERIFY2(c.ok(), c.status().message().c_str());
    QCOMPARE(buildParamTable(c.value()).parameters, expected);
}

} // namespace

class TestModelConfig : public QObject
{
    Q_OBJECT

private slots:

    void everyFieldArrives()
    {
        const ModelConfig c = config(tinyConfig());

        QCOMPARE(c.architecture, std::string("LlamaForCausalLM"));
        QCOMPARE(c.hidden, 12);
        QCOMPARE(c.kvHeads, 2);
        QCOMPARE(c.headDim, 6);
        QCOMPARE(c.qkvColumns(), 48);
        QVERIFY(c.qkvBias && c.attnOutBias && c.mlpBias && !c.tiedEmbedding);
        QVERIFY(c.ropeTheta == 10000.0 && c.rmsNormEps == 1e-5);
        QCOMPARE(c.text, tinyConfig());
    }

    void missingAndNullFieldsHaveTheDefaultsOfTheClass()
    {
        const ModelConfig c = config(R"({"architectures":["LlamaForCausalLM"],"hidden_size":8,
            "intermediate_size":4,"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":5,
            "num_key_value_heads":null,"head_dim":null,"max_position_embeddings":8,
            "rms_norm_eps":1e-6,"rope_scaling":null,"eos_token_id":null})");

        QCOMPARE(c.kvHeads, 2);
        QCOMPARE(c.headDim, 4);
        QVERIFY(!c.tiedEmbedding && !c.qkvBias && !c.attnOutBias && !c.mlpBias);
        QVERIFY(c.eosTokens.empty() && c.bosToken == -1);
    }

    void bothSpellingsOfRopeAndDtypeMeanTheSame()
    {
        const ModelConfig older = config(added("\"rope_theta\": 5e5"));
        std::string text = added(R"("rope_parameters":{"rope_theta":5e5,"rope_type":"default"})");
        text.replace(text.find("torch_dtype"), 11, "dtype");
        const ModelConfig newer = config(text);

        QVERIFY(older.ropeTheta == 5e5 && newer.ropeTheta == 5e5);
        QCOMPARE(older.dtype, newer.dtype);
    }

    void endTokenIsANumberOrAList()
    {
        QCOMPARE(config(added("\"eos_token_id\": 2")).eosTokens, std::vector<std::int64_t>{2});
        QCOMPARE(config(added("\"eos_token_id\": [2, 16]")).eosTokens,
            (std::vector<std::int64_t>{2, 16}));
        QVERIFY(has(refusal(added("\"eos_token_id\": [2, 17]")), "\"eos_token_id\""));
        QVERIFY(has(refusal(added("\"eos_token_id\": 18446744073709551615")), "eos_token_id"));
    }

    void neutralFieldsPass()
    {
        for (const char* field : {"\"attention_dropout\": 0.0", "\"pretraining_tp\": 1",
                 "\"use_cache\": true", "\"_name_or_path\": \"x\"", "\"unknown_thing\": null",
                 "\"unknown_switch\": false", "\"unknown_list\": []", "\"sliding_window\": null",
                 "\"layer_types\": [\"full_attention\", \"full_attention\"]",
                 "\"rope_scaling\": {\"type\": \"default\"}", "\"partial_rotary_factor\": 1.0"})
            QCOMPARE(refusal(added(field)), std::string());
    }

    void fieldsThatChangeTheMathematicsAreRefusedByName()
    {
        for (const char* field : {"\"attention_dropout\": 0.1", "\"pretraining_tp\": 2",
                 "\"quantization_config\": {\"bits\": 4}", "\"auto_map\": {\"AutoModel\": \"x\"}",
                 "\"sliding_window\": 4096", "\"text_config\": {\"a\": 1}", "\"logit_softcap\": 30",
                 "\"partial_rotary_factor\": 0.5", "\"layer_types\": [\"sliding_attention\"]"}) {
            const std::string name(field, std::string_view(field).find('"', 1) + 1);
            const std::string message = refusal(added(field));
            QVERIFY2(has(message, name) && message.starts_with("/m/config.json: "), field);
        }
    }

    void rotaryBaseIsPositiveAndGivenOnce()
    {
        QVERIFY(has(refusal(added(R"("rope_parameters": {"rope_theta": 0})")), "rope_theta"));
        QVERIFY(has(refusal(added(R"("rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5})")),
            "rope_theta"));
        QVERIFY(has(refusal(added(R"("rope_scaling": {"type": "linear", "factor": 2.0},
            "rope_parameters": {"rope_type": "default"})")),
            "rope_parameters"));
    }

    void otherArchitecturesAreRefusedWithWhatIsSupported()
    {
        const std::string message = refusal(changed("LlamaForCausalLM", "GPT2LMHeadModel"));
        QVERIFY(has(message, "GPT2LMHeadModel") && has(message, "LlamaForCausalLM"));
        QVERIFY(has(message, "learned positions") && has(message, "Qwen3ForCausalLM"));
        QVERIFY(has(refusal(changed("\"llama\"", "\"mistral\"")), "mistral"));
        QVERIFY(has(refusal(changed("LlamaForCausalLM", "Qwen2MoeForCausalLM")), "dense"));
        QVERIFY(has(refusal("{}"), "architectures"));
        QVERIFY(has(refusal(added("\"hidden_act\": \"gelu\"")), "gelu"));
    }

    void anArchitectureImpliesWhatItsConfigDoesNotSay()
    {
        const ModelConfig qwen2 = family("Qwen2ForCausalLM", "qwen2");
        QVERIFY(qwen2.qkvBias && !qwen2.attnOutBias && !qwen2.mlpBias && !qwen2.queryKeyNorm);
        QCOMPARE(qwen2.window, 0);
        const ModelConfig qwen3 = family("Qwen3ForCausalLM", "qwen3");
        QVERIFY(qwen3.queryKeyNorm && !qwen3.qkvBias);
        QCOMPARE(qwen3.headDim, 128);
        QVERIFY(family("Qwen3ForCausalLM", "qwen3", R"("attention_bias": true)").attnOutBias);
        const ModelConfig mistral = family("MistralForCausalLM", "mistral");
        QCOMPARE(mistral.window, 4096);
        QVERIFY(mistral.isWindowed(0) && mistral.isWindowed(1) && !mistral.isWindowed(2));
        QVERIFY(family("Phi3ForCausalLM", "phi3").fusedProjections);
        // Null is an answer: no window.
        QCOMPARE(family("MistralForCausalLM", "mistral", R"("sliding_window": null)").window, 0);
    }

    void modelTypeAloneNamesTheArchitecture()
    {
        std::string text = familyConfig("Qwen3ForCausalLM", "qwen3", "");
        const std::string named = R"("architectures":["Qwen3ForCausalLM"],)";
        text.replace(text.find(named), named.size(), "");

        QCOMPARE(config(text).architecture, std::string("Qwen3ForCausalLM"));
    }

    void windowsFollowTheRuleOfTheFamilyOrTheListOfLayers()
    {
        const std::string on = R"("use_sliding_window": true, "sliding_window": 6, )";
        const ModelConfig upper =
            family("Qwen2ForCausalLM", "qwen2", on + R"("max_window_layers": 1)");
        QCOMPARE(upper.window, 6);
        QVERIFY(!upper.isWindowed(0) && upper.isWindowed(1));
        const ModelConfig listed = family("Qwen3ForCausalLM", "qwen3",
            on + R"("layer_types": ["sliding_attention", "full_attention"])");
        QVERIFY(listed.isWindowed(0) && !listed.isWindowed(1) && !listed.isWindowed(-1));
        QCOMPARE(family("Qwen2ForCausalLM", "qwen2", R"("sliding_window": 6)").window, 0);
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

        QVERIFY(c.ropeScaling.type == RopeType::LongRope);
        QCOMPARE(c.ropeScaling.originalPositions, 8.0);
        QCOMPARE(c.ropeScaling.longFactors, (std::vector<float>{2.0F, 3.0F}));
    }

    void gemmaSaysLittleAndMeansMuch()
    {
        const ModelConfig c = family("GemmaForCausalLM", "gemma", R"("hidden_act": "gelu")");

        QVERIFY(c.tiedEmbedding && c.geluGate && c.onePlusNorms && !c.branchNorms);
        QCOMPARE(c.headDim, 256);
        QCOMPARE(c.embeddingScale, std::sqrt(8.0));
        QVERIFY(
            c.window == 0 && c.queryScalar == 0.0 && c.attentionCap == 0.0 && c.logitCap == 0.0);
        QVERIFY(family("GemmaForCausalLM", "gemma", R"("attention_bias": true)").attnOutBias);
        QVERIFY(
            !family("GemmaForCausalLM", "gemma", R"("tie_word_embeddings": false)").tiedEmbedding);
    }

    void gemma2HasItsCapsUnlessTheyAreNull()
    {
        const ModelConfig c = family("Gemma2ForCausalLM", "gemma2");
        QVERIFY(c.attentionCap == 50.0 && c.logitCap == 30.0 && c.queryScalar == 256.0);
        QVERIFY(c.branchNorms && c.window == 4096 && c.isWindowed(0) && !c.isWindowed(1));
        const ModelConfig own = family("Gemma2ForCausalLM", "gemma2",
            R"("attn_logit_softcapping": null, "final_logit_softcapping": 7.5,
               "query_pre_attn_scalar": 144, "sliding_window": 9, "sliding_window_size": 9, "cache_implementation": "hybrid",
               "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
               "layer_types": ["full_attention", "sliding_attention"])");

        QVERIFY(own.attentionCap == 0.0 && own.logitCap == 7.5 && own.queryScalar == 144.0);
        QVERIFY(own.window == 9 && !own.isWindowed(0) && own.isWindowed(1));
    }

    void gemma3TurnsWindowedLayersByABaseOfTheirOwn()
    {
        const ModelConfig c = family("Gemma3ForCausalLM", "gemma3_text");
        QVERIFY(c.ropeTheta == 1e6 && c.localTheta == 1e4 && c.queryKeyNorm);
        QVERIFY(c.attentionCap == 0.0 && c.logitCap == 0.0);
        QVERIFY(c.isWindowed(0) && c.isWindowed(1)); // the sixth of six sees everything
        const ModelConfig older = family("Gemma3ForCausalLM", "gemma3_text",
            R"("sliding_window_pattern": 2, "rope_local_base_freq": 5e3, "rope_theta": 2e6,
               "rope_scaling": {"rope_type": "linear", "factor": 8.0})");
        QVERIFY(older.isWindowed(0) && !older.isWindowed(1));
        const ModelConfig newer = family("Gemma3ForCausalLM", "gemma3_text",
            R"("layer_types": ["sliding_attention", "full_attention"],
               "_sliding_window_pattern": 2, "rope_parameters": {
                 "full_attention": {"rope_theta": 2e6, "rope_type": "linear", "factor": 8.0},
                 "sliding_attention": {"rope_theta": 5e3, "rope_type": "default"}})");

        for (const ModelConfig& each : {older, newer}) {
            QVERIFY(each.ropeTheta == 2e6 && each.localTheta == 5e3);
            QVERIFY(each.ropeScaling.type == RopeType::Linear && each.ropeScaling.factor == 8.0);
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
            refusal(familyConfig("Gemma3ForConditionalGeneration", "gemma3", ""));
        QVERIFY(has(pictures, "Gemma3ForConditionalGeneration") && has(pictures, "pictures"));
    }

    void phi4TurnsAPartOfEachHead()
    {
        const auto fields = [](const char* share) {
            return R"("full_attn_mod": 1, "interpolate_factor": 1, "head_dim": 16, "partial_rotary_factor": )" +
                   std::string(share);
        };
        const ModelConfig c = family("Phi3ForCausalLM", "phi3", fields("0.75"));
        QVERIFY(c.rotaryDim == 12 && c.turnedColumns() == 12 && c.ropeShape().rotaryDim == 12);
        QCOMPARE(family("Phi3ForCausalLM", "phi3", fields("1.0")).turnedColumns(), 16);
        const ModelConfig newer = family("Phi3ForCausalLM", "phi3",
            R"("head_dim": 16, "rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4,
               "original_max_position_embeddings": 8, "partial_rotary_factor": 0.25,
               "short_factor": [1, 1], "long_factor": [2, 3]})");
        QVERIFY(newer.rotaryDim == 4 && newer.ropeScaling.type == RopeType::LongRope);

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

    void impossibleSizesNameTheirField()
    {
        const std::pair<const char*, const char*> cases[] = {
            {"\"hidden_size\": 12", "\"hidden_size\": 0"},
            {"\"hidden_size\": 12", "\"hidden_size\": -4"},
            {"\"hidden_size\": 12", "\"hidden_size\": \"12\""},
            {"\"hidden_size\": 12", "\"hidden_size\": 12.5"},
            {"\"intermediate_size\": 10", "\"intermediate_size\": 1e30"},
            {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2147483647"},
            {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"},
            {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 0"},
            {"\"head_dim\": 6", "\"head_dim\": 5"},
            {"\"vocab_size\": 17", "\"vocab_size\": 2147483648"},
            {"\"vocab_size\": 17", "\"vocab_size\": 99999999999999999999"},
            {"\"max_position_embeddings\": 32", "\"max_position_embeddings\": 0"},
            {"\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 0"},
            {"\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 1e999"}};
        for (const auto& [from, to] : cases) {
            const std::string name(to, std::string_view(to).find('"', 1) + 1);
            const std::string message = refusal(changed(from, to));
            // A number no double holds is refused by the JSON reader already.
            QVERIFY2(has(message, name) || has(to, "1e999"), (message + to).c_str());
            QVERIFY2(!message.empty(), to);
        }
        QVERIFY(has(refusal(changed("\"rms_norm_eps\": 1e-05,", "")), "rms_norm_eps"));
        QVERIFY(has(refusal(changed("\"hidden_size\": 12,", "")), "hidden_size"));
    }

    void hiddenSizeThatHeadsDoNotDivideNeedsHeadDim()
    {
        std::string text = changed("\"head_dim\": 6", "\"head_dim\": null");
        text.replace(text.find("\"hidden_size\": 12"), 17, "\"hidden_size\": 13");

        QVERIFY(has(refusal(text), "hidden_size"));
    }

    void productOfAllowedSizesIsStillLimited()
    {
        std::string text = changed("\"hidden_size\": 12", "\"hidden_size\": 16777216");
        text.replace(text.find("\"intermediate_size\": 10"), 23, "\"intermediate_size\": 16777216");
        text.replace(text.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 9999");

        QVERIFY(has(refusal(text), "more parameters"));
    }

    void duplicateKeyIsRefused()
    {
        QVERIFY(has(refusal(added("\"hidden_size\": 12")), "hidden_size"));
    }

    void publishedConfigsHaveTheirPublishedParameterCounts()
    {
        if (!std::filesystem::is_directory(sharedData() / "configs")) {
            qInfo("skipped: no shared data (MILLRACE_SHARED)");
            return;
        }
        checkParameters("llama-2-7b-hf.config.json", 6'738'415'616);
        checkParameters("llama-3-8b.config.json", 8'030'261'248);
        checkParameters("tinyllama-1.1b-chat.config.json", 1'100'048'384);
        checkParameters("llama-3.1-8b-instruct.config.json", 8'030'261'248);
        checkParameters("llama-3.2-1b-instruct.config.json", 1'235'814'400);
        checkParameters("mistral-7b-v0.1.config.json", 7'241'732'096);
        checkParameters("qwen2.5-0.5b-instruct.config.json", 494'032'768);
        checkParameters("qwen2.5-7b-instruct.config.json", 7'615'616'512);
        checkParameters("qwen3-4b.config.json", 4'022'468'096);
        checkParameters("qwen3-8b.config.json", 8'190'735'360);
        checkParameters("phi-3-mini-4k.config.json", 3'821'079'552);
        checkParameters("gemma-2-2b.config.json", 2'614'341'888);
        for (const char* file : {"gpt2-large", "qwen3-30b-a3b.moe"}) {
            const auto path = sharedData() / "configs" / (std::string(file) + ".config.json");
            QVERIFY2(has(readModelConfig(path).status().message(), "is not supported yet: "), file);
        }
    }
};

QTEST_APPLESS_MAIN(TestModelConfig)
#include "tst_model_config.moc"
