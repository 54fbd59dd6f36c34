// The layouts: counted and cut by the same functions, without overlap, aligned, and of the sizes
// the formulas give.

#include "core/model/layout.h"
#include "core/model/model_config.h"
#include "core/model/model_folder.h"
#include "core/model/param_table.h"
#include "support/block_kinds.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace mr::test::tst_layout {

namespace {

constexpr MicroShape kShape{20, 3, 4, DType::F32};
constexpr std::size_t kAlign = 256; // bytes, of every tensor

// Views inside [base, base + bytes), each at a multiple of kAlign, none over another.
void checkViews(std::vector<TensorView> views, const std::byte* base, std::size_t bytes)
{
    std::sort(views.begin(), views.end(),
        [](const TensorView& a, const TensorView& b) { return std::less<>()(a.data, b.data); });
    const std::byte* end = base;
    for (const TensorView& view : views) {
        QVERIFY(view.data >= end);
        QCOMPARE(static_cast<std::size_t>(view.data - base) % kAlign, std::size_t{0});
        end = view.data + view.bytes();
    }
    QVERIFY(end <= base + bytes);
    QVERIFY(static_cast<std::size_t>(base + bytes - end) <
            kAlign); // nothing but the last one's alignment is unused
}

BlockWidths widthsOf(const ModelConfig& config)
{
    return {config.block, config.hidden};
}

std::size_t layoutActivations(
    const ModelConfig& config, const MicroShape& shape, std::byte* base, BlockActivations& a)
{
    const std::size_t kept = layoutKept(widthsOf(config), shape, base, a);
    return kept + layoutRemade(widthsOf(config), shape, base ? base + kept : nullptr, a);
}

} // namespace

class TestLayout : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void activationsLieApartAndFillWhatWasCounted_data();
    void activationsLieApartAndFillWhatWasCounted();
    void cheapRecomputationDropsNormsAndTheActivation();
    void normedHeadsHaveRowsAndScratchOfTheirOwn();
    void normedBranchesAreKeptAsTheyWere();
    void windowedBlocksMayTurnByTablesOfTheirOwn();
    void batchesHoldFiveColumnsOfAnIndexEach();
    void aWindowThatCutsHasAColumnOfItsOwn();
    void scalarsHoldALossForEachMicroBatchAndTheBlocksOfTheNorm();
    void headChunksCoverAllRowsAndDependOnNothingElse();
    void theHeadHasOneProductUnlessItsGradientOfLogitsIsLarge();
    void ropeTablesHoldTheAnglesOfPublishedModels();
    void aModelShapeCountsEveryParameterAndItsWork();
};

void TestLayout::activationsLieApartAndFillWhatWasCounted_data()
{
    QTest::addColumn<bool>("bf16");
    QTest::newRow("fp32") << false;
    QTest::newRow("bf16") << true;
}

void TestLayout::activationsLieApartAndFillWhatWasCounted()
{
    QFETCH(bool, bf16);
    const ModelConfig config = test::config(test::tinyConfig());
    MicroShape shape = kShape;
    shape.compute = bf16 ? DType::BF16 : DType::F32;
    BlockActivations a;
    const std::size_t counted = layoutActivations(config, shape, nullptr, a);
    std::vector<std::byte> memory(counted + kAlign);
    void* aligned = memory.data();
    std::size_t room = memory.size();
    auto* base = static_cast<std::byte*>(std::align(kAlign, counted, aligned, room));

    const std::size_t cut = layoutActivations(config, shape, base, a);

    QCOMPARE(cut, counted);
    checkViews({a.normed1, a.rstd1, a.qkv, a.attention, a.lse, a.mid, a.normed2, a.rstd2, a.gateUp,
                   a.activated},
        base, counted);
    const std::int64_t tokens = 60;
    QCOMPARE(a.qkv.count(), tokens * (4 + 2 * 2) * 6);
    QCOMPARE(a.attention.count(), tokens * 4 * 6);
    QCOMPARE(a.gateUp.count(), tokens * 2 * 10);
    QCOMPARE(a.lse.count(), tokens * 4);
    QCOMPARE(a.mid.count(), tokens * 12);
    QCOMPARE(a.qkv.dtype, shape.compute);
    QCOMPARE(a.rstd1.dtype, DType::F32);
}

// Llama 3 8B: 22,528 of 65,536 elements a token. Where branches are normed, `mid` goes too.
void TestLayout::cheapRecomputationDropsNormsAndTheActivation()
{
    ModelConfig config = test::config(test::tinyConfig());
    config.hidden = 4096;
    config.block.heads = 32;
    config.block.kvHeads = 8;
    config.block.headDim = 128;
    config.block.intermediate = 14336;
    MicroShape shape = kShape;
    shape.compute = DType::BF16;
    const auto tokens = static_cast<std::size_t>(shape.tokens());
    BlockActivations a;

    QCOMPARE(layoutRemade(widthsOf(config), shape, nullptr, a), 2 * tokens * (2 * 4096 + 14336));
    const std::size_t all = layoutActivations(config, shape, nullptr, a);
    QCOMPARE(layoutKept(widthsOf(config), shape, nullptr, a) + 2 * tokens * 22'528, all);
    const std::size_t floats = 4 * tokens * (32 + 2); // lse and the rstd of both norms
    QVERIFY(all >= 2 * tokens * 65'536 + floats && all < 2 * tokens * 65'536 + floats + 3 * kAlign);
    config.block.branchNorms = true;
    QCOMPARE(layoutRemade(widthsOf(config), shape, nullptr, a), 2 * tokens * (3 * 4096 + 14336));
}

void TestLayout::normedHeadsHaveRowsAndScratchOfTheirOwn()
{
    ModelConfig config = test::config(test::tinyConfig());
    BlockActivations a;
    BlockScratch s;
    const std::size_t plain = layoutActivations(config, kShape, nullptr, a);
    const std::size_t plainScratch = layoutScratch(widthsOf(config), kShape, nullptr, s);
    QCOMPARE(a.queries.rank, 0);
    QCOMPARE(s.headPartial.rank, 0);
    config.block.queryKeyNorm = QueryKeyNorm::Heads;

    const std::size_t counted = layoutActivations(config, kShape, nullptr, a);
    const std::size_t scratchBytes = layoutScratch(widthsOf(config), kShape, nullptr, s);

    // 60 tokens: 4 heads and 2 of keys, of 6 columns; an rstd each.
    QCOMPARE(a.queries.count() + a.keys.count(), std::int64_t{60 * 6 * 6});
    QCOMPARE(a.queryRstd.count() + a.keyRstd.count(), std::int64_t{60 * 6});
    QVERIFY(counted >= plain + std::size_t{4 * (60 * 36 + 60 * 6)});
    QVERIFY(counted < plain + 4 * (60 * 36 + 60 * 6) + 4 * kAlign);
    // 240 and 120 rows in blocks of 64.
    QCOMPARE(s.headPartial.count(), std::int64_t{(4 + 2) * 6});
    QVERIFY(scratchBytes >= plainScratch + std::size_t{4 * 36});
    QVERIFY(scratchBytes < plainScratch + 4 * 36 + kAlign);
}

void TestLayout::normedBranchesAreKeptAsTheyWere()
{
    ModelConfig config = test::config(test::tinyConfig());
    BlockActivations a;
    const std::size_t plain = layoutActivations(config, kShape, nullptr, a);
    QCOMPARE(a.attnBranch.rank, 0);
    config.block.branchNorms = true;

    const std::size_t counted = layoutActivations(config, kShape, nullptr, a);

    QCOMPARE(a.attnBranch.count() + a.mlpBranch.count(), 2 * 60 * config.hidden);
    QCOMPARE(a.attnBranchRstd.count() + a.mlpBranchRstd.count(), std::int64_t{2 * 60});
    QVERIFY(counted >= plain + static_cast<std::size_t>(4 * 2 * 60 * (config.hidden + 1)));
}

void TestLayout::windowedBlocksMayTurnByTablesOfTheirOwn()
{
    ModelConfig config = test::config(test::tinyConfig());
    config.layers = 3;
    setWindows(config, 5, {1, 0, 1}, 1);
    config.ropes.front().rotaryDim = 4;
    config.ropes.push_back({50.0, 4, {}});
    config.ropes.front().scaling.type = RopeType::Linear;
    config.ropes.front().scaling.factor = 8.0;
    ModelConstants tables;
    const std::size_t bytes = layoutConstants(config, kShape, nullptr, tables);
    std::vector<std::byte> memory(bytes + kAlign);
    void* aligned = memory.data();
    std::size_t room = memory.size();
    layoutConstants(
        config, kShape, static_cast<std::byte*>(std::align(kAlign, bytes, aligned, room)), tables);

    fillConstants(config, kShape.seqLen, tables);

    const RopeTables local = ropeOfBlock(config, 0, tables);
    const RopeTables global = ropeOfBlock(config, 1, tables);
    QCOMPARE(local.cosines.dims[1], std::int64_t{2}); // rotated pairs
    QVERIFY(ropeOfBlock(config, -1, tables).cosines.data == nullptr);
    config.blocks[2].turns = false;
    QVERIFY(ropeOfBlock(config, 2, tables).cosines.data == nullptr);
    // Position 3, second pair: 3 theta^(-1/2), globally an eighth of it by the other base.
    QCOMPARE(local.sines.as<const float>()[3 * 2 + 1],
        static_cast<float>(std::sin(static_cast<double>(3.0F * (1.0F / std::sqrt(50.0F))))));
    QCOMPARE(global.sines.as<const float>()[3 * 2],
        static_cast<float>(std::sin(static_cast<double>(3.0F * 0.125F))));
}

void TestLayout::batchesHoldFiveColumnsOfAnIndexEach()
{
    BatchViews batch;

    const std::size_t bytes = layoutBatch(test::config(test::tinyConfig()), kShape, nullptr, batch);

    QCOMPARE(batch.ids.count(), std::int64_t{60});
    QVERIFY(bytes >= std::size_t{5 * 60 * 4});
    QVERIFY(bytes < 5 * (60 * 4 + kAlign));
}

void TestLayout::aWindowThatCutsHasAColumnOfItsOwn()
{
    ModelConfig config = test::config(test::tinyConfig());
    BatchViews batch;
    const std::size_t plain = layoutBatch(config, kShape, nullptr, batch);
    config.block.window = kShape.seqLen; // as long as the sequences: cuts nothing
    QCOMPARE(layoutBatch(config, kShape, nullptr, batch), plain);
    config.block.window = 0;
    setWindows(config, 3, {0, 1});

    const std::size_t bytes = layoutBatch(config, kShape, nullptr, batch);

    QCOMPARE(bytes, plain + kAlign); // 60 indices
    std::vector<std::byte> memory(bytes);
    layoutBatch(config, kShape, memory.data(), batch);
    auto* from = batch.visibleFrom.as<std::int32_t>();
    std::fill(from, from + 60, 0);
    std::fill(from + 20, from + 60, 20); // another document
    from[59] = 59;                       // padding
    fillWindow(config, batch);
    const auto* seen = batchOfBlock(config, 1, batch).visibleFrom.as<const std::int32_t>();
    const std::vector<std::pair<int, std::int32_t>> wanted = {
        {0, 0}, {2, 0}, {3, 1}, {19, 17}, {20, 20}, {22, 20}, {23, 21}, {58, 56}, {59, 59}};
    for (const auto& [row, first] : wanted)
        QCOMPARE(seen[row], first);
    QCOMPARE(batchOfBlock(config, 1, batch).mostKeys, std::int64_t{3});
    for (const std::int64_t block : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{2}}) {
        QCOMPARE(batchOfBlock(config, block, batch).visibleFrom.data, batch.visibleFrom.data);
        QCOMPARE(batchOfBlock(config, block, batch).mostKeys, std::int64_t{kShape.seqLen});
    }
}

void TestLayout::scalarsHoldALossForEachMicroBatchAndTheBlocksOfTheNorm()
{
    const ModelConfig config = test::config(test::tinyConfig());
    const ParamTable table = buildParamTable(config);
    ScalarViews scalars;

    const std::size_t bytes = layoutScalars(table, kShape, nullptr, scalars);

    std::int64_t blocks = 0;
    for (const ParamGroup& group : table.groups)
        blocks += (group.elements + 1023) / 1024;
    QCOMPARE(scalars.losses.count(), kShape.microBatches);
    QCOMPARE(scalars.losses.dtype, DType::F64);
    QCOMPARE(scalars.normBlocks.count(), blocks);
    QCOMPARE(scalars.normChunks.count(), (blocks + 1023) / 1024);
    QCOMPARE(scalars.normChunks.dtype, DType::F64);
    QCOMPARE(scalars.chunksFor(scalars.normBlocks).count(), scalars.normChunks.count());
    QCOMPARE(normChunkCount(1024), std::int64_t{1});
    QCOMPARE(normChunkCount(1025), std::int64_t{2});
    QVERIFY(scalars.sentBytes >= std::size_t{4 * 8 + 16});
    QVERIFY(scalars.sentBytes <= bytes);
    // Each group has its own scalars, apart from each other and from the sent bytes of the step.
    std::vector<std::byte> memory(bytes + 256);
    layoutScalars(table, kShape, memory.data(), scalars);
    const auto groups = static_cast<std::int32_t>(table.groups.size());
    QCOMPARE(scalars.groupScalars.count(), std::int64_t{16} * groups);
    for (GroupId group{0}; group.value < groups; ++group.value) {
        QCOMPARE(scalars.scalarsOf(group).count(), std::int64_t{16});
        const std::ptrdiff_t at = scalars.scalarsOf(group).data - memory.data();
        QCOMPARE(at, scalars.groupScalars.data - memory.data() + 16 * group.value);
        QVERIFY(at >= static_cast<std::ptrdiff_t>(scalars.sentBytes));
    }
    QCOMPARE(normBlockCount(1), std::int64_t{1});
    QCOMPARE(normBlockCount(1024), std::int64_t{1});
    QCOMPARE(normBlockCount(1025), std::int64_t{2});
}

void TestLayout::headChunksCoverAllRowsAndDependOnNothingElse()
{
    for (const std::int64_t tokens : {1, 60, 512, 4096})
        for (const std::int64_t vocab : {61, 32'000, 151'936}) {
            const std::int64_t rows = headChunkRows(tokens, vocab);
            QVERIFY(rows >= 1 && rows <= tokens);
        }
    // Never all logits of a large vocabulary: five chunks of equal rows.
    QCOMPARE(headChunkRows(2048, 151'936), std::int64_t{416});
}

// Vocabulary, hidden size and tokens of published models; rows by hand.
void TestLayout::theHeadHasOneProductUnlessItsGradientOfLogitsIsLarge()
{
    struct Row {
        std::int64_t vocab, hidden, tokens, micros, rows;
    };
    const std::vector<Row> rows = {
        {151'936, 896, 2048, 1, 2048},  // 622 MB
        {151'936, 896, 4096, 1, 2080},  // 1.2 GB: two products, of five chunks of 416
        {151'936, 896, 4096, 8, 2080},  // twice the matrix in F32: 1.1 GB
        {151'936, 1536, 4096, 1, 2080}, // 0.9 GB, less than 1 GiB
        {151'936, 1536, 4096, 8, 4096}, // 1.9 GB
        {152'064, 3584, 4096, 1, 4096}, // 2.2 GB
        {128'256, 4096, 8192, 1, 8192}, // 2.1 GB, as many as the matrix has
        {128'256, 4096, 8208, 1, 4464}, // a little more: nine chunks of 496
        {262'144, 640, 4096, 8, 2048},  // 2.1 GB: eight chunks of 256
    };
    for (const Row& row : rows) {
        ModelConfig config;
        config.vocab = row.vocab;
        config.hidden = row.hidden;
        const MicroShape shape{row.tokens, 1, row.micros, DType::BF16};
        const std::int64_t chunk = headChunkRows(row.tokens, row.vocab);
        QCOMPARE(headProductRows(config, shape), row.rows);
        QVERIFY(row.rows == row.tokens || row.rows % chunk == 0);
        HeadScratch trained;
        HeadScratch asked;
        const std::size_t more = layoutHead(config, shape, true, nullptr, trained) -
                                 layoutHead(config, shape, false, nullptr, asked);
        QCOMPARE(more, static_cast<std::size_t>(2 * row.rows * row.vocab));
        QCOMPARE(trained.logits.dims[0], chunk);
        QCOMPARE(asked.gradLogits.rank, 0);
        // In F32 logits become their gradient where they are.
        const MicroShape full{row.tokens, 1, row.micros, DType::F32};
        layoutHead(config, full, true, trained.rows.normed.data, trained);
        QCOMPARE(trained.logits.data, trained.gradLogits.data);
        // Several products of several micro-batches need a sum of their own.
        const bool needsSum = row.rows < row.tokens && row.micros > 1;
        QCOMPARE(headProductBytes(config, shape),
            static_cast<std::size_t>(needsSum ? 4 * row.vocab * row.hidden : 0));
    }
}

void TestLayout::ropeTablesHoldTheAnglesOfPublishedModels()
{
    const ModelConfig config = test::config(test::tinyConfig());
    ModelConstants tables;
    const std::size_t bytes = layoutConstants(config, kShape, nullptr, tables);
    std::vector<float> memory(bytes / sizeof(float) + kAlign);
    void* aligned = memory.data();
    std::size_t room = memory.size() * sizeof(float);
    layoutConstants(
        config, kShape, static_cast<std::byte*>(std::align(kAlign, bytes, aligned, room)), tables);

    fillConstants(config, kShape.seqLen, tables);

    const auto* cosines = tables.ropes[0].cosines.as<const float>();
    const auto* sines = tables.ropes[0].sines.as<const float>();
    for (std::int64_t position = 0; position < kShape.seqLen; ++position)
        for (std::int64_t i = 0; i < 3; ++i) {
            const double angle =
                static_cast<double>(position) *
                std::pow(config.ropes.front().theta, -2.0 * static_cast<double>(i) / 6.0);
            // The angle is rounded to float three times: up to 20 * 3 * 2^-24 off.
            const double tolerance = 20.0 * 3.0 * 0x1p-24 + 0x1p-23;
            QVERIFY(std::abs(cosines[position * 3 + i] - std::cos(angle)) < tolerance);
            QVERIFY(std::abs(sines[position * 3 + i] - std::sin(angle)) < tolerance);
        }
}

void TestLayout::aModelShapeCountsEveryParameterAndItsWork()
{
    for (const bool tied : {false, true}) {
        const ModelConfig config = test::config(test::tinyConfig(tied));
        const ParamTable table = buildParamTable(config);

        const ModelShape shape = modelShape(config, table, kShape);

        QCOMPARE(shape.groups.size(), table.groups.size());
        double forward = 0.0;
        double backward = 0.0;
        for (std::size_t g = 0; g < shape.groups.size(); ++g) {
            QCOMPARE(shape.groups[g].elements, table.groups[g].elements);
            forward += shape.groups[g].forwardFlops;
            backward += shape.groups[g].backwardFlops;
        }
        // Matrices of a block, the head's matrix, and the lower triangle of attention.
        const double matrices = 2.0 * 12 * (8 * 6 + 4 * 6 + 3 * 10) + 17 * 12;
        const double expected = 2.0 * 60 * matrices + 2.0 * (2.0 * 24 * 20 * 60);
        QCOMPARE(forward, expected);
        QCOMPARE(backward, 2.0 * expected);
    }
    // A window of 5: rows see 1, 2, 3, 4, then 5 keys; the formula counts half a key less a row.
    ModelConfig config = test::config(test::tinyConfig());
    const ParamTable table = buildParamTable(config);
    const ModelShape whole = modelShape(config, table, kShape);
    setWindows(config, 5, {0, 1});
    const ModelShape cut = modelShape(config, table, kShape);
    QCOMPARE(cut.groups[1].forwardFlops, whole.groups[1].forwardFlops);
    const double keys = 0.5 * 20 - (5 - 0.5 * 25.0 / 20);
    QCOMPARE(cut.groups[2].forwardFlops, whole.groups[2].forwardFlops - 4.0 * 24 * 60 * keys);
}

MR_TEST(TestLayout)

} // namespace mr::test::tst_layout

#include "tst_layout.moc"
