// Where parameters lie: slots in order, aligned, and every element of a slot named once.

#include "core/model/model_folder.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>

namespace mr::test::tst_param_table {

class TestParamTable : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void groupsAreEmbeddingBlocksAndHead()
    {
        const ParamTable table = buildParamTable(config(tinyConfig()));

        QCOMPARE(table.groups.size(), std::size_t{4});
        QCOMPARE(table.groups[0].name, std::string("embedding"));
        QCOMPARE(table.groups[2].name, std::string("block 1"));
        QCOMPARE(table.groups[3].name, std::string("head"));
    }

    void namedTensorsCoverEverySlotElementOnce()
    {
        const ParamTable table = buildParamTable(config(tinyConfig()));
        std::vector<std::vector<int>> seen;
        for (const ParamGroup& g : table.groups)
            seen.emplace_back(static_cast<std::size_t>(g.elements), 0);

        std::int64_t named = 0;
        for (const NamedTensor& t : table.tensors) {
            named += t.count();
            for (std::int64_t i = 0; i < t.count(); ++i)
                ++seen[static_cast<std::size_t>(t.group.value)]
                      [static_cast<std::size_t>(t.first + i)];
        }

        QCOMPARE(named, table.parameters);
        for (std::size_t g = 0; g < seen.size(); ++g)
            for (const ParamSlot& s : table.groups[g].paramSlots) {
                QCOMPARE(s.first % kSlotAlign, 0);
                for (std::int64_t i = 0; i < s.count(); ++i)
                    QCOMPARE(seen[g][static_cast<std::size_t>(s.first + i)], 1);
            }
    }

    void queryKeyAndValueFollowOneAnotherInOneMatrix()
    {
        const ParamTable table = buildParamTable(config(tinyConfig()));
        const ParamSlot* qkv = table.find(GroupId{1}, SlotKind::Qkv);
        QVERIFY(qkv != nullptr);
        QCOMPARE(qkv->rows, 48);
        QCOMPARE(qkv->cols, 12);
        for (const NamedTensor& t : table.tensors) {
            if (t.name == "model.layers.0.self_attn.k_proj.weight")
                QCOMPARE(t.first, qkv->first + 24 * 12);
            if (t.name == "model.layers.0.self_attn.v_proj.weight")
                QCOMPARE(t.first, qkv->first + 36 * 12);
        }
    }

    void fusedProjectionsAreWholeSlots()
    {
        ModelConfig fused = config(tinyConfig());
        fused.names.qkv = "qkv_proj";
        fused.names.gateUp = "gate_up_proj";
        const ParamTable table = buildParamTable(fused);
        const ParamTable apart = buildParamTable(config(tinyConfig()));

        QCOMPARE(table.parameters, apart.parameters);
        QCOMPARE(table.groups[1].elements, apart.groups[1].elements);
        const std::vector<std::int64_t> qkv{48, 12};
        const std::vector<std::int64_t> gateUp{20, 12};
        for (const NamedTensor& t : table.tensors) {
            QVERIFY(t.name.find("q_proj") == std::string::npos);
            if (t.name == "model.layers.1.self_attn.qkv_proj.weight")
                QCOMPARE(t.shape, qkv);
            if (t.name == "model.layers.1.mlp.gate_up_proj.weight")
                QCOMPARE(t.shape, gateUp);
        }
        QCOMPARE(std::count_if(table.tensors.begin(), table.tensors.end(),
                     [](const NamedTensor& t) { return t.name.ends_with("_proj.weight"); }),
            std::ptrdiff_t{2 * 4});
    }

    void normsOfHeadsAreVectorsOfAHead()
    {
        ModelConfig normed = config(tinyConfig());
        normed.block.queryKeyNorm = QueryKeyNorm::Heads;
        const ParamTable table = buildParamTable(normed);

        QCOMPARE(table.parameters, buildParamTable(config(tinyConfig())).parameters + 2 * 2 * 6);
        const ParamSlot* keyNorm = table.find(GroupId{2}, SlotKind::KeyNorm);
        QVERIFY(keyNorm != nullptr && keyNorm->rank == 1 && keyNorm->rows == 6);
        QCOMPARE(std::count_if(table.tensors.begin(), table.tensors.end(),
                     [&](const NamedTensor& t) {
                         return t.name == "model.layers.1.self_attn.k_norm.weight" &&
                                t.first == keyNorm->first && t.group == GroupId{2};
                     }),
            std::ptrdiff_t{1});
    }

    void normsOfBranchesTakeTheNamesOfTheFamily()
    {
        ModelConfig normed = config(tinyConfig());
        normed.block.branchNorms = true;
        normed.names.mlpNorm = "pre_feedforward_layernorm";
        const ParamTable table = buildParamTable(normed);
        const auto slotOf = [&](const std::string& name) {
            const auto t = std::find_if(table.tensors.begin(), table.tensors.end(),
                [&](const NamedTensor& each) { return each.name == "model.layers.1." + name; });
            for (const ParamSlot& slot : table.groups[2].paramSlots)
                if (t != table.tensors.end() && slot.first == t->first)
                    return slot.kind;
            return SlotKind::Embedding;
        };

        QVERIFY(slotOf("post_attention_layernorm.weight") == SlotKind::AttnBranchNorm);
        QVERIFY(slotOf("pre_feedforward_layernorm.weight") == SlotKind::MlpNorm);
        QVERIFY(slotOf("post_feedforward_layernorm.weight") == SlotKind::MlpBranchNorm);
        QCOMPARE(table.parameters, buildParamTable(config(tinyConfig())).parameters + 2 * 2 * 12);
    }

    void onlyMatricesAreDecayed()
    {
        for (const ParamGroup& g : buildParamTable(config(tinyConfig())).groups)
            for (const ParamSlot& s : g.paramSlots)
                QCOMPARE(s.decayed, s.rank == 2);
    }

    void tiedHeadHasNoSlotOfItsOwn()
    {
        const ParamTable tied = buildParamTable(config(tinyConfig(true)));
        const ParamTable untied = buildParamTable(config(tinyConfig(false)));

        QVERIFY(tied.find(GroupId{3}, SlotKind::Head) == nullptr);
        QVERIFY(untied.find(GroupId{3}, SlotKind::Head) != nullptr);
        QCOMPARE(untied.parameters - tied.parameters, 17 * 12);
        QVERIFY(tied.find(GroupId{9}, SlotKind::Head) == nullptr);
    }
};

MR_TEST(TestParamTable)

} // namespace mr::test::tst_param_table

#include "tst_param_table.moc"
