// Fields of families of 2025 and 2026 that are made of the parts of others, and their refusals.

#include "core/model/config_texts.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mr::test::tst_newer_families {

namespace {

// Which of the blocks the test holds for, as a text of 0 and 1.
template <typename Test>
std::string marks(const ModelConfig& config, Test test)
{
    std::string text;
    for (std::int64_t i = 0; i < config.layers; ++i)
        text += test(config.kindOf(i)) ? '1' : '0';
    return text;
}

std::string turning(const ModelConfig& config)
{
    return marks(config, [](const BlockKind& kind) { return kind.turns; });
}

std::string windowed(const ModelConfig& config)
{
    return marks(config, [](const BlockKind& kind) { return kind.window > 0; });
}

// As familyConfig(), with eight layers.
std::string deep(const char* name, const char* type, const std::string& fields = "")
{
    std::string text = familyConfig(name, type, fields);
    return text.replace(text.find("layers\":2"), 9, "layers\":8");
}

std::string hybrid(const std::string& fields)
{
    return familyConfig("GraniteMoeHybridForCausalLM", "granitemoehybrid",
        R"("shared_intermediate_size": 6, "mamba_d_conv": 4)" +
            std::string(fields.empty() ? "" : ", ") + fields);
}

std::vector<std::string> namesOf(const ModelConfig& config)
{
    std::vector<std::string> names;
    for (const NamedTensor& tensor : buildParamTable(config).tensors)
        names.push_back(tensor.name);
    return names;
}

bool holds(const std::vector<std::string>& names, const char* name)
{
    return std::ranges::count(names, std::string("model.layers.0.") + name) == 1;
}

} // namespace

class TestNewerFamilies : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void smolLm3SaysWhichLayersTurn()
    {
        const auto smol = [](const std::string& fields) {
            return config(deep("SmolLM3ForCausalLM", "smollm3", fields));
        };
        QCOMPARE(turning(smol("")), std::string("11101110"));
        QCOMPARE(turning(smol(R"("no_rope_layer_interval": 3)")), std::string("11011011"));
        QCOMPARE(
            turning(smol(R"("no_rope_layers": [0,1,1,1,1,1,1,0,1])")), std::string("01111110"));
        const ModelConfig cut =
            smol(R"("use_sliding_window": true, "sliding_window": 5, "no_rope_layer_interval": 2)");
        QCOMPARE(windowed(cut), std::string("01010101"));
        QVERIFY(cut.tiedEmbedding && cut.ropes.front().theta == 2e6 && cut.padToken == -1);
        QVERIFY(has(refusal(deep("SmolLM3ForCausalLM", "smollm3", R"("no_rope_layers": [1])")),
            "no_rope_layers"));
        QVERIFY(has(refusal(deep(
                        "SmolLM3ForCausalLM", "smollm3", R"("no_rope_layers": [1,1,1,2,1,1,1,1])")),
            "holds 2"));
    }

    void olmoNormsBehindItsBranchesAndWholeRows()
    {
        const ModelConfig olmo2 = family("Olmo2ForCausalLM", "olmo2");
        QVERIFY(!olmo2.block.inputNorms && olmo2.block.branchNorms);
        const ParamTable table = buildParamTable(olmo2);
        QCOMPARE(table.find(GroupId{1}, SlotKind::QueryNorm)->rows, std::int64_t{8});
        QVERIFY(table.find(GroupId{1}, SlotKind::AttnNorm) == nullptr);
        QVERIFY(holds(namesOf(olmo2), "post_attention_layernorm.weight") &&
                holds(namesOf(olmo2), "post_feedforward_layernorm.weight") &&
                !holds(namesOf(olmo2), "input_layernorm.weight"));
        const ModelConfig olmo3 = config(deep("Olmo3ForCausalLM", "olmo3",
            R"("rope_scaling": {"rope_type": "yarn", "factor": 8.0,
                "original_max_position_embeddings": 8})"));
        QCOMPARE(windowed(olmo3), std::string("11101110"));
        QVERIFY(olmo3.kindOf(0).rope == 1 && olmo3.kindOf(3).rope == 0);
        QVERIFY(olmo3.ropes[0].scaling.type == RopeType::Yarn);
        QVERIFY(olmo3.ropes[1].scaling == RopeScaling() && olmo3.ropes[1].theta == 5e5);
    }

    // transformers has read such a file in two ways.
    void olmo3WithAnotherThetaSaysItForBothKinds()
    {
        QVERIFY(has(refusal(deep("Olmo3ForCausalLM", "olmo3", R"("rope_theta": 1000.0)")),
            "sliding layers"));
        const ModelConfig both = config(deep("Olmo3ForCausalLM", "olmo3",
            R"("rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 2000.0}})"));
        QVERIFY(both.ropes[0].theta == 1000.0 && both.ropes[1].theta == 2000.0);
    }

    void exaoneTurnsWhereItHasAWindow()
    {
        const auto exaone = [](const std::string& fields) {
            return deep("Exaone4ForCausalLM", "exaone4", fields);
        };
        const ModelConfig large = config(exaone(R"("sliding_window": 3)"));
        QCOMPARE(windowed(large), std::string("11101110"));
        QCOMPARE(turning(large), std::string("11101110"));
        QVERIFY(!large.block.inputNorms && large.block.queryKeyNorm == QueryKeyNorm::Heads);
        const ModelConfig letters =
            config(exaone(R"("sliding_window": 3, "sliding_window_pattern": "LG")"));
        QCOMPARE(windowed(letters), std::string("10101010"));
        const ModelConfig small =
            config(exaone(R"("sliding_window": null, "sliding_window_pattern": null)"));
        QCOMPARE(windowed(small), std::string("00000000"));
        QCOMPARE(turning(small), std::string("11111111"));
        const ModelConfig unused =
            config(exaone(R"("sliding_window": 3, "sliding_window_pattern": 1)"));
        QCOMPARE(windowed(unused), std::string("00000000"));
        QCOMPARE(turning(unused), std::string("00000000"));
        QVERIFY(has(refusal(exaone(R"("sliding_window": 3, "sliding_window_pattern": "LLG")")),
            "last layer"));
        QVERIFY(has(
            refusal(exaone(R"("sliding_window": 3, "sliding_window_pattern": "LX")")), "L and G"));
    }

    void graniteHasFourMultipliers()
    {
        const ModelConfig granite = family("GraniteForCausalLM", "granite",
            R"("embedding_multiplier": 12.0, "attention_multiplier": 0.0078125,
                "residual_multiplier": 0.22, "logits_scaling": 16.0)");
        QVERIFY(granite.embeddingScale == 12.0 && granite.block.scoreScale == 0.0078125);
        QVERIFY(granite.block.branchScale == 0.22 && granite.logitScale == 0.0625);
        // Without a field scores are not scaled at all.
        QCOMPARE(family("GraniteForCausalLM", "granite").block.scoreScale, 1.0);
        QVERIFY(
            has(refusal(familyConfig("GraniteForCausalLM", "granite", R"("logits_scaling": 0.0)")),
                "logits_scaling"));
    }

    void granite4IsReadWhereItHasNoExpertsAndNoMamba()
    {
        const std::string dense = R"("num_local_experts": 0, "layer_types": ["attention",
            "attention"])";
        const ModelConfig c = config(hybrid(dense + R"(, "position_embedding_type": "rope")"));
        QVERIFY(c.block.intermediate == 6 && c.block.turns);
        QVERIFY(holds(namesOf(c), "shared_mlp.input_linear.weight") &&
                holds(namesOf(c), "shared_mlp.output_linear.weight"));
        QVERIFY(!config(hybrid(dense)).block.turns);
        QVERIFY(has(refusal(hybrid(R"("layer_types": ["attention", "attention"])")), "experts"));
        QVERIFY(has(refusal(hybrid(R"("num_local_experts": 0)")), "Mamba"));
        QVERIFY(has(refusal(hybrid(R"("num_local_experts": 0,
            "layers_block_type": ["mamba", "attention"])")),
            "Mamba"));
    }

    void glmTurnsNeighboursInHalfOfAHead()
    {
        const ModelConfig glm = family("Glm4ForCausalLM", "glm4", R"("head_dim": 8)");
        QVERIFY(glm.block.pairs == RopePairs::Neighbours && glm.ropes.front().rotaryDim == 4);
        QVERIFY(glm.block.qkvBias && !glm.block.attnOutBias && glm.block.branchNorms);
        const ParamTable table = buildParamTable(glm);
        const auto slotOf = [&](const std::string& name) {
            for (const NamedTensor& tensor : table.tensors)
                if (tensor.name == "model.layers.1." + name + ".weight")
                    return table.slotAt(tensor.group, tensor.first).kind;
            return SlotKind::Embedding;
        };
        QVERIFY(slotOf("post_attention_layernorm") == SlotKind::MlpNorm);
        QVERIFY(slotOf("post_self_attn_layernorm") == SlotKind::AttnBranchNorm);
        QVERIFY(slotOf("post_mlp_layernorm") == SlotKind::MlpBranchNorm);
        QVERIFY(slotOf("mlp.gate_up_proj") == SlotKind::GateUp);
    }

    void biasesAreThoseThatTheFieldsName()
    {
        const auto block = [](const char* name, const char* type, const char* fields) {
            return family(name, type, fields).block;
        };
        const BlockKind seed = block("SeedOssForCausalLM", "seed_oss", "");
        QVERIFY(seed.qkvBias && !seed.attnOutBias && !seed.mlpBias);
        const BlockKind out = block("SeedOssForCausalLM", "seed_oss",
            R"("attention_bias": false, "attention_out_bias": true)");
        QVERIFY(!out.qkvBias && out.attnOutBias);
        const BlockKind ernie = block("Ernie4_5ForCausalLM", "ernie4_5", R"("use_bias": true)");
        QVERIFY(ernie.qkvBias && ernie.attnOutBias && ernie.mlpBias);
        QVERIFY(!block("Ernie4_5ForCausalLM", "ernie4_5", "").qkvBias);
    }

    void dropoutThatAModelIsPublishedWithIsLeftOutAndSaid()
    {
        const ModelConfig seed = family("SeedOssForCausalLM", "seed_oss",
            R"("attention_dropout": 0.1, "residual_dropout": 0.1)");
        QVERIFY(seed.notes.size() == 1 && has(seed.notes.front(), "dropout"));
        QVERIFY(family(
            "SeedOssForCausalLM", "seed_oss", R"("attention_dropout": 0.0, "residual_dropout": 0)")
                    .notes.empty());
        QVERIFY(has(
            refusal(familyConfig("GraniteForCausalLM", "granite", R"("attention_dropout": 0.1)")),
            "dropout"));
    }

    void queriesOfMinistralGrowWithTheirPosition()
    {
        const ModelConfig c = family("Ministral3ForCausalLM", "ministral3");
        const RopeScaling& scaling = c.ropes.front().scaling;
        QVERIFY(scaling.type == RopeType::Yarn && scaling.queryGrowth == 0.1);
        QCOMPARE(queryFactor(scaling, 16383), 1.0);
        QCOMPARE(queryFactor(scaling, 16384), 1.0 + 0.1 * std::log(2.0));
        QCOMPARE(queryFactor(scaling, 5 * 16384 + 7), 1.0 + 0.1 * std::log(6.0));
        QVERIFY(has(refusal(familyConfig("LlamaForCausalLM", "llama",
                        R"("rope_scaling": {"type": "yarn", "factor": 2.0,
                            "llama_4_scaling_beta": 0.1})")),
            "llama_4_scaling_beta"));
    }

    void alphaStretchesThetaAtEveryLength()
    {
        const ModelConfig c = family("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense",
            R"("head_dim": 8, "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0,
                "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.0})");
        const Rope& rope = c.ropes.front();
        QVERIFY(c.block.queryKeyNorm == QueryKeyNorm::TurnedHeads);
        QVERIFY(!rope.scaling.dependsOnLength() && c.longestSequence() == 16);
        const RopeFrequencies turns = ropeFrequencies(rope.scaling, c.shapeOf(rope), 16);
        const double theta = 10000.0 * std::pow(1000.0, 8.0 / 6.0);
        for (int i = 0; i < 4; ++i) {
            const auto inverse = static_cast<double>(turns.inverse[static_cast<std::size_t>(i)]);
            QVERIFY(std::abs(inverse * std::pow(theta, i / 4.0) - 1.0) < 1e-6);
        }
        QVERIFY(has(refusal(familyConfig("LlamaForCausalLM", "llama",
                        R"("rope_scaling": {"type": "dynamic", "alpha": 2.0, "factor": 1.0})")),
            "alpha"));
    }
};

MR_TEST(TestNewerFamilies)

} // namespace mr::test::tst_newer_families

#include "tst_newer_families.moc"
