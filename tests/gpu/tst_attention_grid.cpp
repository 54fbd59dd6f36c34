// The blocks of attention keep the slots of a card busy, by simulation, for models that people
// fine-tune; and the choice between tiles by card.
//
// A slot is the place of a block: at head_dim 128 an RTX 4090 has 128 of 128 rows (one on each of
// its 128 SMs), an RTX 5090 170 and an H200 264 (two on each of 132).

#include "gpu/ops/attention_choice.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mr::test::tst_attention_grid {

using gpu::AttentionCard;
using gpu::AttentionChoice;
using gpu::AttentionGrid;
using gpu::AttentionKernel;

namespace {

constexpr AttentionKernel kKernels[] = {
    AttentionKernel::Forward, AttentionKernel::KeyGradients, AttentionKernel::QueryGradients};

constexpr AttentionCard kRtx3090{8, 82, std::size_t{100} << 10};
constexpr AttentionCard kRtx4090{8, 128, std::size_t{100} << 10};
constexpr AttentionCard kRtx5090{12, 170, std::size_t{100} << 10};
constexpr AttentionCard kA100{8, 108, std::size_t{164} << 10};
constexpr AttentionCard kH200{9, 132, std::size_t{228} << 10};

// Gradients of keys have a block for each query head, because the model lends the scratch for it.
AttentionGrid gridOf(AttentionKernel kernel, int heads, int headDim, int tokens, int window = 0)
{
    return {kernel, headDim, heads, tokens, 0, window};
}

} // namespace

class TestAttentionGrid : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void modelsKeepTheSlotsBusy_data()
    {
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("headDim");
        QTest::addColumn<int>("window");
        QTest::newRow("Qwen2.5 0.5B") << 14 << 64 << 0;
        QTest::newRow("Qwen2.5 1.5B") << 12 << 128 << 0;
        QTest::newRow("Qwen2.5 3B") << 16 << 128 << 0;
        QTest::newRow("Qwen2.5 7B") << 28 << 128 << 0;
        QTest::newRow("Llama 3 8B") << 32 << 128 << 0;
        QTest::newRow("Gemma 3 4B") << 8 << 256 << 0;
        QTest::newRow("Gemma 3 4B, sliding window") << 8 << 256 << 1024;
    }

    void modelsKeepTheSlotsBusy()
    {
        QFETCH(const int, heads);
        QFETCH(const int, headDim);
        QFETCH(const int, window);

        std::string idle;
        for (const AttentionKernel kernel : kKernels)
            for (const int tokens : {2048, 4096})
                for (const AttentionCard& card : {kRtx4090, kRtx5090, kH200}) {
                    const AttentionGrid grid = gridOf(kernel, heads, headDim, tokens, window);
                    AttentionChoice choice(card);
                    const int rows = choice.rows(grid);
                    const int slots = choice.slots(grid, rows);
                    const double share = gpu::busyShare(grid, rows, slots);
                    if (share < 0.65)
                        idle += fmt::format("kernel {}, {} tokens, {} slots: {} rows, {:.3f}\n",
                            static_cast<int>(kernel), tokens, slots, rows, share);
                }

        QVERIFY2(idle.empty(), idle.c_str());
    }

    // By hand, with a unit for each block's own rows: 3 blocks of 1, 2 and 3 steps on 2 slots run
    // 4, then 3 and 2 after each other; 2 such heads on 2 slots 4 + 3 + 2 each.
    void theShareIsThatOfListScheduling()
    {
        const AttentionGrid one = gridOf(AttentionKernel::QueryGradients, 1, 128, 192);
        QCOMPARE(gpu::busyShare(one, 64, 2), 9.0 / (2 * 5));
        QCOMPARE(gpu::busyShare(one, 64, 4), 9.0 / (4 * 4));
        QCOMPARE(gpu::busyShare(gridOf(AttentionKernel::KeyGradients, 2, 128, 192), 64, 2), 1.0);
        // The last query alone: one block, which walks over all 3 tiles of keys.
        AttentionGrid last = gridOf(AttentionKernel::Forward, 1, 128, 192);
        last.firstQuery = 191;
        QCOMPARE(gpu::busyShare(last, 128, 4), 0.25);
    }

    // A window of one tile: blocks after the first walk over two tiles, and none over three.
    void aWindowEndsAWalk()
    {
        const AttentionGrid forward = gridOf(AttentionKernel::Forward, 1, 128, 256, 64);
        QCOMPARE(gpu::busyShare(forward, 64, 4), (3.0 + 3.0 + 3.0 + 2.0) / (4 * 3));
        const AttentionGrid keys = gridOf(AttentionKernel::KeyGradients, 1, 128, 256, 64);
        QCOMPARE(gpu::busyShare(keys, 64, 4), (3.0 + 3.0 + 3.0 + 2.0) / (4 * 3));
    }

    void slotsAreThoseOfTheCards()
    {
        const auto slots = [](const AttentionCard& card, int headDim) {
            std::vector<int> each;
            for (const AttentionKernel kernel : kKernels)
                each.push_back(AttentionChoice(card).slots(
                    gridOf(kernel, 1, headDim, 64), gpu::attentionRows(kernel, headDim).front()));
            return each;
        };
        QCOMPARE(slots(kRtx4090, 128), (std::vector{128, 128, 128}));
        QCOMPARE(slots(kRtx5090, 128), (std::vector{170, 170, 170}));
        QCOMPARE(slots(kH200, 128), (std::vector{264, 264, 264}));
        QCOMPARE(slots(kA100, 128), (std::vector{216, 216, 216}));
        QCOMPARE(slots(kRtx4090, 64), (std::vector{256, 256, 256}));
        QCOMPARE(slots(kRtx4090, 256), (std::vector{128, 128, 128}));
    }

    void smallMultiprocessorsTakeTwoSmallBlocks()
    {
        const auto first = [](const AttentionCard& card, AttentionKernel kernel, int headDim) {
            return AttentionChoice(card).preferredRows(kernel, headDim).front();
        };
        for (const AttentionCard& card : {kRtx3090, kRtx4090, kRtx5090}) {
            QCOMPARE(first(card, AttentionKernel::Forward, 128), 64);
            QCOMPARE(first(card, AttentionKernel::Forward, 64), 128);
            QCOMPARE(
                gpu::blocksOnSm(card, gpu::attentionTile(AttentionKernel::Forward, 128, 64)), 2);
        }
        for (const AttentionCard& card : {kA100, kH200})
            QCOMPARE(first(card, AttentionKernel::Forward, 128), 128);
    }

    // TFLOP/s of an H200 with 128, 64 and 32 rows, measured on 2026-11-27; of both kernels of a
    // backward together.
    void theFastestTileOfACardIsChosen()
    {
        AttentionChoice choice(kH200);
        const auto rows = [&](AttentionKernel kernel, int heads, int headDim, int tokens) {
            return choice.rows(gridOf(kernel, heads, headDim, tokens));
        };
        QCOMPARE(rows(AttentionKernel::Forward, 32, 128, 4096), 128); // 298, 279, 258
        QCOMPARE(rows(AttentionKernel::Forward, 32, 64, 4096), 128);  // 275, 255, 230
        QCOMPARE(rows(AttentionKernel::Forward, 12, 128, 2048), 64);  // 143, 189, 170
        QCOMPARE(rows(AttentionKernel::Forward, 8, 256, 2048), 32);   // -, 144, 191
        for (const AttentionKernel kernel :
            {AttentionKernel::KeyGradients, AttentionKernel::QueryGradients}) {
            QCOMPARE(rows(kernel, 32, 128, 4096), 64); // -, 176, 156
            QCOMPARE(rows(kernel, 32, 64, 4096), 64);  // -, 151, 142
            QCOMPARE(rows(kernel, 12, 128, 2048), 64); // -, 134, 116
        }
    }

    // A grid that is too small for every tile gets the one that comes nearest.
    void fewQueriesTakeAnyTile()
    {
        AttentionGrid grid = gridOf(AttentionKernel::Forward, 12, 128, 2048);
        grid.firstQuery = 2047;
        QCOMPARE(AttentionChoice(kH200).rows(grid), 128);
    }

    void choicesAreRememberedByShape()
    {
        AttentionChoice choice(kH200);
        std::vector<int> first;
        std::vector<int> again;
        for (std::vector<int>* rows : {&first, &again})
            for (int heads = 1; heads <= 40; ++heads)
                rows->push_back(choice.rows(gridOf(AttentionKernel::Forward, heads, 128, 2048)));
        QCOMPARE(again, first);
        QCOMPARE(first.front(), 64);
        QCOMPARE(first.back(), 128);
        QCOMPARE(choice.rows(gridOf(AttentionKernel::Forward, 40, 128, 2048)), 128);
    }

    void aLimitOfRowsIsKept()
    {
        for (const int limit : {128, 64, 48, 32})
            for (const AttentionKernel kernel : kKernels)
                for (const int headDim : {64, 80, 96, 128, 256}) {
                    AttentionChoice choice(kH200, limit);
                    const auto all = gpu::attentionRows(kernel, headDim);
                    const int rows = choice.rows(gridOf(kernel, 1, headDim, 1024));
                    QVERIFY(std::ranges::find(all, rows) != all.end());
                    QVERIFY(rows <= std::max(limit, all.back()));
                }
    }
};

MR_TEST(TestAttentionGrid)

} // namespace mr::test::tst_attention_grid

#include "tst_attention_grid.moc"
